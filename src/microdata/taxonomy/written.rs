//! One spelling of a taxonomy, its schema and its digest.

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use utoipa::openapi::schema::AdditionalProperties;
use utoipa::openapi::{ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::tree::Taxonomy;

impl Taxonomy {
    /// The taxonomy as documents state it: `{"Any": {"Field": ["Driver"], "Office": ["Banker", "Clerk"]}}`. Equal taxonomies are
    /// written alike. Where the order of nodes, or leaves beside them, cannot be said by an object, an array holds one for each node.
    #[must_use]
    pub fn written(&self) -> Value {
        // children come behind their parents
        let mut below: Vec<Vec<(u32, Value)>> = vec![Vec::new(); self.len()];
        for node in (0..self.len() as u32).rev() {
            let mut children = std::mem::take(&mut below[node as usize]);
            children.reverse();
            let value = match children.is_empty() {
                true => self.label(node).map_or(Value::Null, Value::from),
                false => self.members(children),
            };
            match self.parent(node) {
                Some(parent) => below[parent as usize].push((node, value)),
                None => return self.named(node, value),
            }
        }
        Value::Null
    }

    fn named(&self, node: u32, value: Value) -> Value {
        Map::from_iter([(self.label(node).unwrap_or_default().to_owned(), value)]).into()
    }

    /// What stands below a node.
    fn members(&self, children: Vec<(u32, Value)>) -> Value {
        let inner = children.iter().all(|(node, _)| !self.is_leaf(*node));
        if inner && children.is_sorted_by(|(a, _), (b, _)| self.label(*a) < self.label(*b)) {
            let members = children.into_iter();
            return members.map(|(node, value)| (self.label(node).unwrap_or_default().to_owned(), value)).collect();
        }
        let one = |(node, value)| if self.is_leaf(node) { value } else { self.named(node, value) };
        children.into_iter().map(one).collect()
    }

    /// The digest that identifies the taxonomy.
    #[must_use]
    pub fn digest(&self) -> [u8; 32] {
        Sha256::digest(self.written().to_string().as_bytes()).into()
    }
}

impl PartialSchema for Taxonomy {
    fn schema() -> RefOr<Schema> {
        let about = "A tree: one member, the root. A node is an object of nodes, or an array of values (text, integers, decimals, \
                     true, false; null is the missing value) and of objects of nodes. No label occurs twice. At most 65536 nodes, \
                     and 32 steps from the root.";
        let tree = ObjectBuilder::new().title(Some("Taxonomy")).description(Some(about));
        let members = Some(AdditionalProperties::FreeForm(true));
        tree.min_properties(Some(1)).max_properties(Some(1)).additional_properties(members).into()
    }
}

impl ToSchema for Taxonomy {}
