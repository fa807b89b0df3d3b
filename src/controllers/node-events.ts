/** Events about nodes, in words that several controllers share. */
import type { Node } from '#apis/core/v1.ts'

import type { ControllerContext } from './controller.ts'

/** `Node n1 event: <what>`. */
export function tellOfNode(node: Node, reason: string, what: string, context: ControllerContext): void {
  tell(node, reason, `event: ${what}`, context)
}

/** `Node n1 status is now: <status>`. */
export function tellNodeStatus(node: Node, status: string, context: ControllerContext): void {
  tell(node, status, `status is now: ${status}`, context)
}

/** Of a node there is no more to say than its name and uid. */
function tell(
  { metadata: { name = '', uid = '' } }: Node,
  reason: string,
  what: string,
  context: ControllerContext,
): void {
  const about = { kind: 'Node', apiVersion: 'v1', metadata: { name, uid } }
  context.event(about, { type: 'Normal', reason, message: `Node ${name} ${what}` })
}
