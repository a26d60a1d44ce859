//! The tools of routes to plain HTTP, with their schemas.

use super::Surroundings;
use crate::config::error::Problems;
use crate::config::keys::{HttpTool as Keys, Route};
use crate::{HttpTool, HttpTools, RouteKind};

/// The table of a route.
pub(super) fn resolve(route: &Route, around: &Surroundings<'_>, problems: &mut Problems) -> HttpTools {
    if route.kind == RouteKind::HttpTool && route.tools.is_empty() {
        let example = "tools = [{ name = \"refund\", method = \"POST\", path = \"/v1/charges/{charge}/refund\" }]";
        route.name.reject(problems, format!("a route of kind = \"http-tool\" needs its tools, such as {example}"));
    }
    // Every tool is looked at before one fault ends it.
    let tools: Vec<_> = route.tools.iter().map(|tool| resolve_one(tool, around, problems)).collect();
    let Some(tools) = tools.into_iter().collect::<Option<Vec<_>>>() else { return HttpTools::default() };
    HttpTools::new(tools).unwrap_or_else(|duplicate| {
        if let (Some(first), Some(second)) = (route.tools.get(duplicate.first), route.tools.get(duplicate.second)) {
            let message = format!(
                "{} {} is the path of the tool at {} too; which of them is called could not be told",
                second.method.0,
                &**second.path,
                first.path.origin()
            );
            second.path.reject(problems, message);
        }
        HttpTools::default()
    })
}

fn resolve_one(keys: &Keys, around: &Surroundings<'_>, problems: &mut Problems) -> Option<HttpTool> {
    let tool = HttpTool::new(&keys.name, keys.method.0.clone(), &keys.path);
    let tool = tool.map_err(|why| keys.path.reject(problems, format!("found {:?}: {why}", &**keys.path))).ok();
    let Some(path) = &keys.schema else { return tool };
    let text = around.folder.read(path, problems)?;
    let file = around.folder.resolve(path);
    let unusable = |why: String| path.reject(problems, format!("{} is no usable JSON Schema: {why}", file.display()));
    tool?.schema(text.as_bytes()).map_err(unusable).ok()
}
