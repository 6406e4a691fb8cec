use super::*;

mod fuzz;

// `pickle.dumps` of a table with two phones, by protocols 0, 2 and 4.
const AVAILABILITY: [&[u8]; 3] = [
    b"(dp0\x0aV3834\x0ap1\x0a(dp2\x0aVactive\x0ap3\x0a(lp4\x0aI10\x0aaF100.5\x0aasVinactive\x0ap5\x0a(lp6\x0aI60\x0aaI130\x0aasVfinish_time\x0ap7\x0aI200\x0asVduration\x0ap8\x0aF79.5\x0asVmodel\x0ap9\x0aVx\x0ap10\x0assI7\x0a(dp11\x0ag3\x0a(lp12\x0asg5\x0a(lp13\x0asg7\x0aI100\x0asg8\x0aI0\x0asg9\x0aNss.",
    b"\x80\x02}q\x00(X\x04\x00\x00\x003834q\x01}q\x02(X\x06\x00\x00\x00activeq\x03]q\x04(K\x0aG@Y \x00\x00\x00\x00\x00eX\x08\x00\x00\x00inactiveq\x05]q\x06(K<K\x82eX\x0b\x00\x00\x00finish_timeq\x07K\xc8X\x08\x00\x00\x00durationq\x08G@S\xe0\x00\x00\x00\x00\x00X\x05\x00\x00\x00modelq\x09X\x01\x00\x00\x00xq\x0auK\x07}q\x0b(h\x03]q\x0ch\x05]q\x0dh\x07Kdh\x08K\x00h\x09Nuu.",
    b"\x80\x04\x95\x84\x00\x00\x00\x00\x00\x00\x00}\x94(\x8c\x043834\x94}\x94(\x8c\x06active\x94]\x94(K\x0aG@Y \x00\x00\x00\x00\x00e\x8c\x08inactive\x94]\x94(K<K\x82e\x8c\x0bfinish_time\x94K\xc8\x8c\x08duration\x94G@S\xe0\x00\x00\x00\x00\x00\x8c\x05model\x94\x8c\x01x\x94uK\x07}\x94(h\x03]\x94h\x05]\x94h\x07Kdh\x08K\x00h\x09Nuu.",
];
// Of a table with 162 and 20 ms per sample, 5648.1 and 100000 kbit/s.
const CAPACITY: &[u8] = b"\x80\x04\x95L\x00\x00\x00\x00\x00\x00\x00}\x94(K\x01}\x94(\x8c\x0bcomputation\x94G@d@\x00\x00\x00\x00\x00\x8c\x0dcommunication\x94G@\xb6\x10\x19\x99\x99\x99\x9auK\x02}\x94(h\x02K\x14h\x03J\xa0\x86\x01\x00uu.";
// Of an object whose class says `os.system("true")`.
const CODE: &[u8] =
    b"\x80\x02}q\x00K\x01cposix\x0asystem\x0aq\x01X\x04\x00\x00\x00trueq\x02\x85q\x03Rq\x04s.";

const PHONES: &str = r#"{"b": {"guid": "g", "model": "m", "messages": "2020-01-31 23:59:50\tscreen_lock\n2020-02-01 00:00:00\tWIFI\n2020-02-01 00:00:10\tbattery_charged_on\n2020-02-01 00:00:20\t85.0%\n2020-02-01 00:01:10\tscreen_unlock\n2020-02-01 00:01:30\tscreen_lock\n2020-02-01 00:01:40\t4g\n2020-02-01 00:01:50\tscreen_off"},
 "a": {"guid": "h", "model": "m", "messages": "2020-01-31 23:59:50\tscreen_on\n2020-01-31 23:59:59\twifi"}}"#;

fn files(contents: &[&[u8]]) -> (tempfile::TempDir, Vec<PathBuf>) {
    let folder = tempfile::tempdir().unwrap();
    let write = |(at, bytes): (usize, &&[u8])| {
        let file = folder.path().join(format!("trace-{at}"));
        std::fs::write(&file, bytes).unwrap();
        file
    };
    let files = contents.iter().enumerate().map(write).collect();
    (folder, files)
}

/// The failures of each client, round by round.
fn imported(format: Format, contents: &[&[u8]], request: &Request) -> Vec<Vec<f64>> {
    let (_folder, files) = files(contents);
    let text = import(format, &files, request).unwrap();
    let mut rows = text.lines();
    assert_eq!(rows.next(), Some("round,client,failure"));
    let mut clients: Vec<Vec<f64>> = Vec::new();
    for row in rows {
        let fields: Vec<&str> = row.split(',').collect();
        let client: usize = fields[1].parse().unwrap();
        clients.resize_with(clients.len().max(client), Vec::new);
        clients[client - 1].push(fields[2].parse().unwrap());
        assert_eq!(fields[0], clients[client - 1].len().to_string());
    }
    clients
}

fn refusal(format: Format, contents: &[&[u8]]) -> String {
    let (_folder, files) = files(contents);
    let error = import(format, &files, &Request::default()).unwrap_err().to_string();
    let name = files.last().unwrap().display().to_string();
    let rest = error.strip_prefix(&name).unwrap_or_else(|| panic!("{error} does not name {name}"));
    rest.trim_start_matches(':').trim().to_owned()
}

/// On line from 10 to 60 and from 100.5 to 130, of 200 s; the other phone never.
#[test]
fn fedscale_s_availability_is_as_by_hand() {
    let request = Request { rounds: 12, slot: 20.0, deadline: 5.0, ..Request::default() };
    for pickle in AVAILABILITY {
        let found = imported(Format::Fedscale, &[pickle], &request);
        //           0    20   40   60   80   100  120  140  160  180  200 (0) 220 (20)
        let first = [1., 0., 0., 1., 1., 1., 0., 1., 1., 1., 1., 0.];
        assert_eq!(found, [first.to_vec(), vec![1.0; 12]]);
    }
    // Of four starts a quarter of the slot apart, 105, 110, 115, 120 all succeed, 125 ends with the interval.
    let request = Request { rounds: 7, starts: 4, ..request };
    let found = imported(Format::Fedscale, &AVAILABILITY[..1], &request);
    assert_eq!(found[0], [0.5, 0.0, 0.25, 1.0, 1.0, 0.25, 0.75]);
}

/// 3 · 10 samples · 0.162 s + 2 · 1024 kbit / 5648.1 = 5.2226 s, and 3 · 10 · 0.02 + 0.02048 = 0.62048 s.
#[test]
fn fedscale_s_capacity_is_as_by_hand() {
    let request = Request {
        rounds: 1,
        samples: 10.0,
        bits: 1024.0 * 1024.0,
        deadline: 5.2,
        ..Request::default()
    };
    assert_eq!(imported(Format::Fedscale, &[CAPACITY], &request), [[1.0], [0.0]]);
    let longer = Request { deadline: 5.23, ..request };
    assert_eq!(imported(Format::Fedscale, &[CAPACITY], &longer), [[0.0], [0.0]]);
    // With both, a phone must stay for as long as it needs: 5.2226 s from 100 on it is not there yet, from 120 on it stays.
    let both = Request { rounds: 7, slot: 20.0, deadline: 10.0, ..request };
    let found = imported(Format::Fedscale, &[AVAILABILITY[1], CAPACITY], &both);
    assert_eq!(found[0], [1.0, 0.0, 0.0, 1.0, 1.0, 1.0, 0.0]);
}

/// Regression: with more capacities than traces of behaviour, phones with the same trace of it were there at the same times. The golden
/// ratio's phases are 0, 123.6 s, 47.2 s and, for the client beyond all six capacities, 170.8 s of 200 s.
#[test]
fn phones_that_share_a_trace_have_other_times_of_it() {
    let files = [AVAILABILITY[0], CAPACITY, CAPACITY, CAPACITY];
    let request = Request {
        clients: Some(8),
        rounds: 3,
        slot: 20.0,
        samples: 0.0,
        bits: 0.0,
        ..Request::default()
    };
    let found = imported(Format::Fedscale, &files, &request);
    let wanted = [[1., 0., 0.], [0., 1., 1.], [0., 1., 1.], [1., 1., 0.]];
    for (found, wanted) in found.iter().step_by(2).zip(wanted) {
        assert_eq!(found, &wanted);
    }
    // The other trace is of a phone that is never there.
    assert!(found.iter().skip(1).step_by(2).all(|found| found == &[1.0; 3]), "{found:?}");
}

#[test]
fn a_pickle_that_wants_to_run_code_is_refused_at_its_byte() {
    let refused = refusal(Format::Fedscale, &[CODE]);
    assert!(refused.starts_with("byte 7: the pickle wants to run code"), "{refused}");
    for cut in [0, 1, 5, 30, 100] {
        let refused = refusal(Format::Fedscale, &[&AVAILABILITY[2][..cut]]);
        assert!(refused.contains("the pickle ends here"), "{cut}: {refused}");
    }
    assert_eq!(refusal(Format::Fedscale, &[b"K\x01."]), "the pickle is no dictionary of clients");
    assert_eq!(
        refusal(Format::Fedscale, &[b"}K\x01}s."]),
        "client 1 of the pickle: active is missing: neither availability nor capacity"
    );
    assert_eq!(refusal(Format::Fedscale, &[b"}."]), "no client has a trace here");
    let garbage = refusal(Format::Fedscale, &[b"round,client"]);
    assert!(garbage.starts_with("byte 0: "), "{garbage}");
}

/// Ready from 20 s to 80 s and from 100 s to 110 s, of 120 s; the other phone is never ready. The clock begins 86,390 s before the first
/// time stamp, at midnight: 719 whole periods and 110 s, so at second 10 of the trace.
#[test]
fn flash_s_phones_are_as_by_hand() {
    let request =
        Request { rounds: 8, slot: 20.0, deadline: 30.0, compute: 0.0, ..Request::default() };
    let phones = PHONES.as_bytes();
    //                                                    10  30  50  70  90  110 130(10) 150(30)
    assert_eq!(imported(Format::Flash, &[phones], &request), [[1., 0., 0., 0., 1., 1., 1., 0.]]);
    // 20 s of work: from 70 on only 10 s are left until 100.
    let request = Request { compute: 20.0, ..request };
    assert_eq!(imported(Format::Flash, &[phones], &request), [[1., 0., 0., 1., 1., 1., 1., 0.]]);
    // With a deadline of 45 s, work goes on after the pause: from 70 to 80 and from 100 to 110.
    let request = Request { deadline: 45.0, ..request };
    assert_eq!(imported(Format::Flash, &[phones], &request), [[1., 0., 0., 0., 1., 1., 1., 0.]]);
}

/// Regression: every phone's clock began at its own first time stamp, so that two phones ready from 22:00 to 6:00 were not ready together.
#[test]
fn phones_share_the_hours_of_the_day() {
    let phone = |first: &str| {
        serde_json::json!({"messages": format!(
            "{first}\tscreen_lock\n2020-01-02 22:00:00\twifi\n2020-01-02 22:00:00\tbattery_charged_on\n\
             2020-01-03 06:00:00\tbattery_charged_off\n2020-01-04 12:00:00\tscreen_off"
        )})
    };
    let early = serde_json::json!({"p": phone("2020-01-02 09:00:00")}).to_string();
    let late = serde_json::json!({"p": phone("2020-01-02 17:00:00")}).to_string();
    // Every two hours: the 12th round is at 22:00, the 16th at 6:00.
    let request = Request { rounds: 24, slot: 7200.0, deadline: 0.0, ..Request::default() };
    let night = |round: usize| f64::from(u8::from(!(12..16).contains(&round)));
    let wanted: Vec<f64> = (1..=24).map(night).collect();
    let found = imported(Format::Flash, &[early.as_bytes(), late.as_bytes()], &request);
    // From 9:00 or 17:00 to noon two days later each trace is read as it is.
    assert_eq!(found[0][5..], wanted[5..]);
    assert_eq!(found[1][9..], wanted[9..]);
}

#[test]
fn wrong_phones_are_refused_with_their_line() {
    let with = |messages: &str| {
        let text = format!(r#"{{"p": {{"messages": {}}}}}"#, serde_json::json!(messages));
        refusal(Format::Flash, &[text.as_bytes()])
    };
    let place = r#"phone "p", messages, line 2: "#;
    let first = "2020-01-31 23:59:50\twifi\n";
    for (second, reason) in [
        ("2020-01-31\twifi", "\"2020-01-31\" is no time stamp YYYY-MM-DD HH:MM:SS"),
        (
            "2020-13-01 00:00:00\twifi",
            "\"2020-13-01 00:00:00\" is no time stamp YYYY-MM-DD HH:MM:SS",
        ),
        // Regression: a day that the calendar does not have passed as one.
        (
            "2020-02-30 00:00:00\twifi",
            "\"2020-02-30 00:00:00\" is no time stamp YYYY-MM-DD HH:MM:SS",
        ),
        (
            "2100-02-29 00:00:00\twifi",
            "\"2100-02-29 00:00:00\" is no time stamp YYYY-MM-DD HH:MM:SS",
        ),
        ("2020-01-31 23:59:49\twifi", "2020-01-31 23:59:49 is before the line above"),
        ("2020-02-01 00:00:00\tflying", "unknown state \"flying\""),
        ("2020-02-01 00:00:00 wifi", "no time stamp, tab, state"),
    ] {
        assert_eq!(with(&format!("{first}{second}")), format!("{place}{reason}"));
    }
    assert!(refusal(Format::Flash, &[b"{\n\"p\": 1}"]).starts_with("2: "));
    assert_eq!(with(first), "no client has a trace here");
}

/// 1 Mbit/s for 10 s, then 3 Mbit/s for 5 s; the clock of the trace begins at 100 s.
#[test]
fn bandwidth_is_as_by_hand() {
    let trace = b"100\t0.5\n110\t1\n115\t3\n";
    let request = Request {
        rounds: 6,
        slot: 5.0,
        deadline: 5.0,
        bits: 7e6,
        compute: 1.0,
        ..Request::default()
    };
    // Bits in (t + 1, t + 5): 4, 4, 12 Mbit, again 4, 4, 12.
    assert_eq!(imported(Format::Bandwidth, &[trace], &request), [[1., 1., 0., 1., 1., 0.]]);
    // From 7.5 on: 2.5 + ... until 12.5: computing ends at 8.5, so 1.5 + 7.5 = 9 Mbit.
    let later = Request { rounds: 2, slot: 7.5, ..request };
    assert_eq!(imported(Format::Bandwidth, &[trace], &later), [[1., 0.]]);
    let slow = Request { compute: 6.0, bits: 0.0, ..request };
    assert_eq!(imported(Format::Bandwidth, &[trace], &slow), [[1.0; 6]]);
    // Two clients on one trace have different phases, two files different traces.
    let two = Request { clients: Some(2), ..request };
    let found = imported(Format::Bandwidth, &[trace], &two);
    assert_ne!(found[0], found[1]);
    let found = imported(Format::Bandwidth, &[trace, b"0 9\n1 9\n"], &request);
    assert_eq!(found[1], [0.0; 6]);
}

#[test]
fn wrong_bandwidths_and_intervals_are_refused_with_their_line() {
    for (text, reason) in [
        ("0 1\n5 1 1\n", "2: 3 values instead of seconds and Mbit/s"),
        ("0 1\n5 fast\n", "2: Mbit/s: \"fast\" is no number of 0 or more"),
        ("0 1\n-5 1\n", "2: seconds: \"-5\" is no number of 0 or more"),
        ("0 1\n5 1\n\n5 2\n", "4: seconds: 5 is not after the line above"),
        ("0 1\n", "needs at least two lines of seconds and Mbit/s"),
        ("", "needs at least two lines of seconds and Mbit/s"),
    ] {
        assert_eq!(refusal(Format::Bandwidth, &[text.as_bytes()]), reason);
    }
    for (text, reason) in [
        ("client,on,off\na,1\n", "2: 2 values instead of client,on,off"),
        ("a,1,x\n", "1: off: \"x\" is no time in seconds"),
        ("a,2,1\n", "1: off: 1 is not after on, 2"),
        (
            "a,1,5\nb,1,5\na,4,6\n",
            "3: on: 4 is before the end of the interval above of client \"a\"",
        ),
        ("client,on,off\n", "no client has a trace here"),
    ] {
        assert_eq!(refusal(Format::Intervals, &[text.as_bytes()]), reason);
    }
    assert_eq!(refusal(Format::Intervals, &[b"\xff\xfe"]), "not a text file");
}

#[test]
fn intervals_are_as_by_hand() {
    let text = b"client,on,off\nx,0,10\ny,5,20\nx,15,20\n";
    let request = Request { rounds: 5, slot: 5.0, deadline: 5.0, ..Request::default() };
    // All repeats after 20 s: x is there from 15 to 30.
    let found = imported(Format::Intervals, &[text], &request);
    assert_eq!(found, [[0., 1., 1., 0., 0.], [1., 0., 0., 1., 1.]]);
    let instant = Request { deadline: 0.0, ..request };
    let found = imported(Format::Intervals, &[text], &instant);
    assert_eq!(found, [[0., 0., 1., 0., 0.], [1., 0., 0., 0., 1.]]);
}

/// Regression: a first line of a client whose name begins with "client" was taken for the header.
#[test]
fn only_the_header_is_a_header() {
    let lines: &[u8] = b"client1,0,4000\nclient1,7000,9000\nclient2,3000,12000\n";
    let request = Request { rounds: 3, slot: 3600.0, deadline: 300.0, ..Request::default() };
    let found = imported(Format::Intervals, &[lines], &request);
    assert_eq!(found, [[0., 0., 0.], [1., 0., 0.]]);
    for header in ["client,on,off\n", " client , on , off \n"] {
        let with = [header.as_bytes(), lines].concat();
        assert_eq!(imported(Format::Intervals, &[&with], &request), found);
    }
    let client = refusal(Format::Intervals, &[b"client,0,x\n"]);
    assert_eq!(client, "1: off: \"x\" is no time in seconds");
}

/// What is written is read by the program's own reader.
#[test]
fn an_imported_trace_is_a_trace() {
    let (folder, files) = files(&[b"x,0,10\ny,5,20\n"]);
    let text = import(Format::Intervals, &files, &Request::default()).unwrap();
    std::fs::write(folder.path().join("trace.csv"), &text).unwrap();
    let config: crate::NetworkConfig =
        toml::from_str("kind = 'trace'\nfile = 'trace.csv'").unwrap();
    let network = crate::Network::new(&config, 2, 10, 1, folder.path()).unwrap();
    let mut failures = Vec::new();
    network.failures(1, &mut failures);
    assert_eq!(failures, [1.0, 1.0]);
}
