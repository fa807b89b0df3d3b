/** Walks over the nodes of a CEL expression's tree. */
import type { Expression } from './ast.ts'

/** The children of a node, in upstream's order. */
export function childrenOf(node: Expression): readonly Expression[] {
  switch (node.kind) {
    case 'literal':
    case 'identifier':
      return []
    case 'select':
      return [node.operand]
    case 'call':
      return node.target === undefined ? node.args : [node.target, ...node.args]
    case 'list':
      return node.elements
    case 'map':
      return node.entries.flatMap(({ key, value }) => [key, value])
    case 'message':
      return node.fields.map(({ value }) => value)
    case 'comprehension':
      return [node.range, node.initial, node.condition, node.step, node.result]
  }
}

/** Every node, those below before those above; `path` is what is above, from the root. */
export function walk(
  node: Expression,
  visit: (node: Expression, path: readonly Expression[]) => void,
  path: Expression[] = [],
): void {
  path.push(node)
  for (const child of childrenOf(node)) walk(child, visit, path)
  path.pop()
  visit(node, path)
}
