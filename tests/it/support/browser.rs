//! A browser without a window.

use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// An installed browser.
pub(crate) struct Browser(PathBuf);

/// The browser of this machine. Without one a test is skipped, and says so, unless `REQUIRE_BROWSER` is set.
pub(crate) fn found() -> Option<Browser> {
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let folders: Vec<PathBuf> = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()).collect();
    let found =
        names.iter().flat_map(|name| folders.iter().map(move |folder| folder.join(name))).find(|path| path.is_file());
    assert!(found.is_some() || std::env::var_os("REQUIRE_BROWSER").is_none(), "no browser is installed");
    if found.is_none() {
        eprintln!("skipped: no browser is installed");
    }
    found.map(Browser)
}

impl Browser {
    /// Prints the page at an address to a file.
    pub(crate) fn print(&self, address: &str, pdf: &Path) {
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new(&self.0);
        command.args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-pdf-header-footer",
            "--disable-dev-shm-usage",
        ]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        command.arg(format!("--print-to-pdf={}", pdf.display())).arg(address);
        let status = command.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap();
        assert!(status.success() && pdf.is_file(), "{status}");
    }
}

/// A page in a browser that is driven as a person would: by clicks and keys.
pub(crate) struct Driver {
    process: Child,
    /// The address of the session.
    session: String,
    client: reqwest::Client,
}

impl Driver {
    /// Opens a browser. `None` where [`found`] finds none.
    pub(crate) async fn open() -> Option<Self> {
        let Browser(program) = found()?;
        let mut process = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .expect("the package chromium-driver");
        let lines = BufReader::new(process.stdout.take().unwrap()).lines().map_while(Result::ok);
        let port = lines
            .filter_map(|line| {
                line.rsplit_once("successfully on port ").map(|(_, port)| port.trim_end_matches('.').to_owned())
            })
            .next()
            .expect("a port");
        let options = json!({"binary": program, "args": ["--headless", "--no-sandbox", "--disable-gpu",
            "--disable-dev-shm-usage", "--window-size=1200,1000"]});
        let wanted = json!({"capabilities": {"alwaysMatch": {"goog:chromeOptions": options}}});
        let mut driver =
            Self { process, session: format!("http://127.0.0.1:{port}/session"), client: reqwest::Client::new() };
        let id = driver.call("", &wanted).await["sessionId"].as_str().unwrap().to_owned();
        driver.session = format!("{}/{id}", driver.session);
        Some(driver)
    }

    async fn call(&self, path: &str, body: &Value) -> Value {
        let sent = self.client.post(format!("{}{path}", self.session)).json(body).send().await.unwrap();
        let mut answer: Value = sent.json().await.unwrap();
        let value = answer["value"].take();
        assert!(value.get("error").is_none(), "{path} {body}: {value:#}");
        value
    }

    pub(crate) async fn visit(&self, address: &str) {
        self.call("/url", &json!({"url": address})).await;
    }

    /// The value of an expression of the page.
    pub(crate) async fn value(&self, expression: &str) -> Value {
        self.call("/execute/sync", &json!({"script": format!("return {expression}"), "args": []})).await
    }

    /// The first element for a selector, as soon as there is one.
    async fn element(&self, selector: &str) -> String {
        let present = format!("document.querySelector(`{selector}`) !== null");
        for _ in 0..300 {
            if self.value(&present).await == json!(true) {
                let found = self.call("/element", &json!({"using": "css selector", "value": selector})).await;
                return found.as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("{selector} did not appear");
    }

    pub(crate) async fn click(&self, selector: &str) {
        let element = self.element(selector).await;
        self.call(&format!("/element/{element}/click"), &json!({})).await;
    }

    /// Types a text, or the path of a file to pick.
    pub(crate) async fn enter(&self, selector: &str, text: &str) {
        let element = self.element(selector).await;
        self.call(&format!("/element/{element}/value"), &json!({"text": text})).await;
    }

    /// Pastes a text in place of what stands there.
    pub(crate) async fn paste(&self, selector: &str, text: &str) {
        self.click(selector).await;
        let script = "document.activeElement.select(); return document.execCommand('insertText', false, arguments[0])";
        let pasted = self.call("/execute/sync", &json!({"script": script, "args": [text]})).await;
        assert_eq!(pasted, json!(true), "{selector}");
    }

    /// Ends the browser and removes its files.
    pub(crate) async fn close(self) {
        self.client.delete(&self.session).send().await.unwrap();
    }

    /// What an element shows, as soon as it is there.
    pub(crate) async fn shown(&self, selector: &str) -> String {
        self.element(selector).await;
        self.value(&format!("document.querySelector(`{selector}`).innerText")).await.as_str().unwrap().to_owned()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // the driver and its browser are a group of their own; on the way of a failed test nothing can be awaited
        let group = rustix::process::Pid::from_child(&self.process);
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        let _ = self.process.wait();
    }
}
