//! Chromium without a window, driven through its DevTools protocol over two pipes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Long enough for a busy machine; nobody waits for it unless something is wrong.
pub const PATIENCE: Duration = Duration::from_secs(240);

/// A browser with one page open.
pub struct Browser {
    process: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    session: Option<String>,
    next: u64,
    /// Errors that the page had, in words.
    problems: Vec<String>,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser: the one that `FEDCOTE_CHROMIUM` names.
    pub fn start() -> Self {
        let program = std::env::var("FEDCOTE_CHROMIUM")
            .expect("these tests need Chromium: run them with `cargo xtask test browser`");
        let profile = tempfile::tempdir().unwrap();
        // Chromium reads commands from descriptor 3 and answers on 4.
        let mut process = Command::new("sh")
            .args(["-c", "exec \"$@\" 3<&0 4>&1 0</dev/null 1>/dev/null 2>&1", "sh", &program])
            .args([
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
            ])
            .args([
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
            ])
            .args(["--disable-dev-shm-usage", "--hide-scrollbars", "--remote-debugging-pipe"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::spawn(move || {
            for message in output.split(0) {
                let Ok(bytes) = message else { break };
                let message = serde_json::from_slice(&bytes).expect("the protocol is JSON");
                if sender.send(message).is_err() {
                    break;
                }
            }
        });
        let problems = Vec::new();
        let mut browser =
            Self { process, input, messages, session: None, next: 0, problems, _profile: profile };
        let target = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attach = json!({ "targetId": target["targetId"], "flatten": true });
        let session = browser.call("Target.attachToTarget", attach);
        browser.session = Some(session["sessionId"].as_str().unwrap().to_owned());
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser.size(1280, 900);
        browser
    }

    /// Calls a method of the protocol and returns its result.
    pub fn call(&mut self, method: &str, parameters: Value) -> Value {
        self.attempt(method, parameters).unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    fn attempt(&mut self, method: &str, parameters: Value) -> Result<Value, Value> {
        self.next += 1;
        let id = self.next;
        let mut message = json!({ "id": id, "method": method, "params": parameters });
        if let Some(session) = &self.session {
            message["sessionId"] = json!(session);
        }
        let mut bytes = message.to_string().into_bytes();
        bytes.push(0);
        self.input.write_all(&bytes).expect("the browser listens");
        loop {
            let answer = self.messages.recv_timeout(PATIENCE);
            let answer = answer.unwrap_or_else(|error| panic!("{method}: {error}"));
            if answer["id"] == id {
                return match answer.get("error") {
                    None => Ok(answer["result"].clone()),
                    Some(error) => Err(error.clone()),
                };
            }
            self.notice(&answer);
        }
    }

    fn notice(&mut self, event: &Value) {
        let parameters = &event["params"];
        match event["method"].as_str() {
            Some("Runtime.exceptionThrown") => {
                self.problems.push(parameters["exceptionDetails"].to_string());
            }
            Some("Log.entryAdded") if parameters["entry"]["level"] == "error" => {
                self.problems.push(parameters["entry"].to_string());
            }
            Some("Runtime.consoleAPICalled") if parameters["type"] == "error" => {
                self.problems.push(parameters["args"].to_string());
            }
            _ => {}
        }
    }

    /// Errors since the last time asked.
    pub fn problems(&mut self) -> Vec<String> {
        self.eval("0");
        std::mem::take(&mut self.problems)
    }

    /// Opens an address and waits until it is there.
    pub fn open(&mut self, address: &str) {
        let answer = self.call("Page.navigate", json!({ "url": address }));
        assert!(answer.get("errorText").is_none(), "{address}: {answer}");
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'");
    }

    /// Loads the page again.
    pub fn reload(&mut self) {
        self.eval("window.before = true");
        self.call("Page.reload", json!({}));
        self.wait("!window.before && document.readyState === 'complete'");
    }

    /// The value of an expression of JavaScript.
    pub fn eval(&mut self, expression: &str) -> Value {
        let parameters =
            json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.call("Runtime.evaluate", parameters);
        assert!(answer.get("exceptionDetails").is_none(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    /// A text that an expression gives.
    pub fn text(&mut self, expression: &str) -> String {
        self.eval(expression).as_str().unwrap_or_else(|| panic!("{expression}: no text")).to_owned()
    }

    /// Waits until an expression is true; it may throw until then.
    pub fn wait(&mut self, expression: &str) {
        let begun = Instant::now();
        let guarded =
            format!("(() => {{ try {{ return !!({expression}) }} catch {{ return false }} }})()");
        // A page that is being left has nowhere to evaluate in.
        let parameters = json!({ "expression": guarded, "returnByValue": true });
        let done = |answer: Result<Value, Value>| {
            answer.is_ok_and(|answer| answer["result"]["value"] == json!(true))
        };
        while !done(self.attempt("Runtime.evaluate", parameters.clone())) {
            if begun.elapsed() > PATIENCE {
                let page = self.eval("location.href + '\\n' + document.body.innerText");
                panic!("never came true: {expression}\n{page}\n{:?}", self.problems);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Presses a key where the focus is.
    pub fn press(&mut self, key: &str) {
        let code = match key {
            "Home" => 36,
            "End" => 35,
            "ArrowLeft" => 37,
            "ArrowRight" => 39,
            "Tab" => 9,
            "Enter" => 13,
            "Escape" => 27,
            _ => panic!("no code for {key}"),
        };
        for kind in ["keyDown", "keyUp"] {
            let mut event =
                json!({ "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code });
            // A button is pressed by what the key types.
            if key == "Enter" && kind == "keyDown" {
                event["text"] = json!("\r");
            }
            self.call("Input.dispatchKeyEvent", event);
        }
    }

    /// The size of the window in pixels.
    pub fn size(&mut self, width: u32, height: u32) {
        let metrics = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600 });
        self.call("Emulation.setDeviceMetricsOverride", metrics);
    }

    /// Light or dark, and whether motion is wanted.
    pub fn prefer(&mut self, scheme: &str) {
        let features = json!([
            { "name": "prefers-color-scheme", "value": scheme },
            { "name": "prefers-reduced-motion", "value": "reduce" },
        ]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// Cuts the network off.
    pub fn offline(&mut self) {
        let conditions = json!({ "offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0 });
        self.call("Network.emulateNetworkConditions", conditions);
    }

    /// Whether anything is wider than the window.
    pub fn overflow(&mut self) -> Option<String> {
        let find = "(() => { const wide = document.documentElement.clientWidth; \
            if (document.documentElement.scrollWidth <= wide) return null; \
            const out = [...document.body.querySelectorAll('*')].filter((e) => e.getBoundingClientRect().right > wide + 1); \
            return out.slice(0, 3).map((e) => e.outerHTML.slice(0, 200)).join(' | ') || 'something'; })()";
        self.eval(find).as_str().map(str::to_owned)
    }

    /// A picture of the window as PNG, in base64.
    #[allow(dead_code)] // for the screenshots only
    pub fn picture(&mut self) -> String {
        let picture = self.call("Page.captureScreenshot", json!({ "format": "png" }));
        picture["data"].as_str().unwrap().to_owned()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Its own children go with it.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
