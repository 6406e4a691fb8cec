//! Who fails together, from the `[network.groups]` table.

use fedcote::{Groups, SettingError};
use fedcote_support::readable;

use crate::config::{Kind, NetworkConfig};
use crate::error::{refused, unknown};

impl NetworkConfig {
    /// The groups of so many clients, if there are any.
    pub(crate) fn groups_of(&self, clients: usize) -> Result<Option<Groups>, SettingError> {
        if self.groups.is_empty() {
            return Ok(None);
        }
        let names: Vec<&str> = self.groups.keys().map(String::as_str).collect();
        let mut of: Vec<Option<usize>> = vec![None; clients];
        let mut failure = Vec::new();
        for (at, (name, group)) in self.groups.iter().enumerate() {
            let key = |last: &str| format!("groups.{name}.{last}");
            if !(0.0..=1.0).contains(&group.failure) {
                let found = readable(group.failure);
                return Err(refused(
                    key("failure"),
                    format!("must be between 0 and 1, not {found}"),
                ));
            }
            failure.push(group.failure);
            let (members, listed) = match (&group.clients, &group.station) {
                (Some(_), Some(_)) => {
                    let reason = "give either `station` or `clients`, not both";
                    return Err(refused(key("station"), reason));
                }
                (None, None) => {
                    let reason = "is missing: list the clients, or name their `station`";
                    return Err(refused(key("clients"), reason));
                }
                (Some(members), None) if members.is_empty() => {
                    return Err(refused(key("clients"), "is empty: list the clients of the group"));
                }
                (Some(members), None) => (members.clone(), "clients"),
                (None, Some(station)) => {
                    (self.behind(station, clients, &key("station"))?, "station")
                }
            };
            for client in members {
                if client == 0 || client > clients {
                    let reason = format!("client {client} is not one of 1 to {clients}");
                    return Err(refused(key(listed), reason));
                }
                match of[client - 1].replace(at) {
                    None => {}
                    Some(other) if other == at => {
                        let reason = format!("client {client} is listed twice");
                        return Err(refused(key(listed), reason));
                    }
                    Some(other) => {
                        let reason =
                            format!("client {client} is in group {} already", names[other]);
                        return Err(refused(key(listed), reason));
                    }
                }
            }
        }
        let groups = Groups::new(failure, of);
        groups.map(Some).map_err(|error| refused("groups", error.to_string()))
    }

    /// The clients of a station, counted from 1.
    fn behind(&self, name: &str, clients: usize, key: &str) -> Result<Vec<usize>, SettingError> {
        if self.kind != Kind::Radio {
            let reason = "only kind = \"radio\" has stations: list the clients";
            return Err(refused(key, reason));
        }
        let standards = self.used_standards()?;
        let station = |client: usize| {
            let standard = &self.standard_order[client % self.standard_order.len()];
            let found = standards.iter().find(|known| known.name == *standard);
            found.map(|standard| standard.station.as_str())
        };
        let members: Vec<usize> =
            (0..clients).filter(|&at| station(at) == Some(name)).map(|at| at + 1).collect();
        if members.is_empty() {
            let mut known: Vec<&str> = standards.iter().map(|s| s.station.as_str()).collect();
            known.sort_unstable();
            known.dedup();
            return Err(unknown(key, "station with clients", name, &known));
        }
        Ok(members)
    }
}
