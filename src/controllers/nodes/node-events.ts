/** Events about Nodes that several controllers record. */
import type { Node } from '#apis/core/v1.ts'

import type { ControllerContext } from '../controller.ts'

/** `Node n1 event: <what>`. */
export function recordNodeEvent(node: Node, reason: string, what: string, context: ControllerContext): void {
  record(node, reason, `event: ${what}`, context)
}

/** `Node n1 status is now: <status>`. */
export function recordNodeStatus(node: Node, status: string, context: ControllerContext): void {
  record(node, status, `status is now: ${status}`, context)
}

/** The reference contains only name and uid, as upstream. */
function record(
  { metadata: { name = '', uid = '' } }: Node,
  reason: string,
  what: string,
  context: ControllerContext,
): void {
  const about = { kind: 'Node', apiVersion: 'v1', metadata: { name, uid } }
  context.event(about, { type: 'Normal', reason, message: `Node ${name} ${what}` })
}
