// The official TypeScript SDK as a client that can do everything. Calls tools of `examples/mcp_fixture` and prints, as JSON,
// what came of it: mcp_client.mjs URL MODE TOOL=ARGUMENTS...
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const [url, mode, ...calls] = process.argv.slice(2);
const asked = [];
const progress = [];
const client = new Client(
  { name: "typescript", version: "1" },
  {
    capabilities: { elicitation: {}, sampling: {}, roots: {} },
    versionNegotiation: { mode: mode === "legacy" ? mode : { pin: mode } },
  },
);
client.setRequestHandler("elicitation/create", async ({ params }) => {
  asked.push(params.message);
  const fields = Object.keys(params.requestedSchema.properties);
  return { action: "accept", content: Object.fromEntries(fields.map((field) => [field, `my ${field}`])) };
});
client.setRequestHandler("sampling/createMessage", async ({ params }) => {
  const text = params.messages[0].content.text;
  asked.push(text);
  return { role: "assistant", model: "scripted", content: { type: "text", text: `I heard: ${text}` } };
});
client.setRequestHandler("roots/list", async () => ({ roots: [{ uri: "file:///work", name: "work" }] }));

await client.connect(new StreamableHTTPClientTransport(new URL(url)));
const { tools } = await client.listTools();
const results = [];
for (const call of calls) {
  const [name, args] = call.split(/=(.*)/s);
  const params = { name, arguments: JSON.parse(args || "{}") };
  results.push(await client.callTool(params, { onprogress: (told) => progress.push(told) }));
}
await client.close();
console.log(JSON.stringify({ tools, results, asked, progress }));
