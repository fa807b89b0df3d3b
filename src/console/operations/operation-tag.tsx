/** The state of an Operation as a tag. */
import type { VNode } from 'preact'

import { type Operation, stateOfOperation } from './operations.ts'

export function OperationTag({ operation }: { readonly operation: Operation }): VNode {
  const { text, tone } = stateOfOperation(operation)
  return <span class={`tone tone-${tone ?? 'none'}`}>{text}</span>
}
