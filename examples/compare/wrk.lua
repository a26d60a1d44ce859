-- wrk … URL -- BODY-FILE [NAME VALUE]…: posts the file with those headers, and ends with one line of figures for wrk.rs.
-- Where the file has @id@, each request has another number.

function init(arguments)
    local file = assert(io.open(arguments[1], "rb"))
    wrk.method, wrk.body = "POST", file:read("*a")
    file:close()
    for at = 2, #arguments, 2 do
        wrk.headers[arguments[at]] = arguments[at + 1]
    end
    local before, after = wrk.body:match("^(.*)@id@(.*)$")
    if before then
        local id = 0
        function request()
            id = id + 1
            return wrk.format(nil, nil, nil, before .. id .. after)
        end
    end
end

function done(summary, latency)
    local errors = summary.errors
    print(string.format(
        '{"requests":%d,"micros":%d,"p50":%d,"p99":%d,"errors":%d}',
        summary.requests, summary.duration, latency:percentile(50), latency:percentile(99),
        errors.connect + errors.read + errors.write + errors.status + errors.timeout
    ))
end
