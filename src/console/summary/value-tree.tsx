/** Any value as a tree that opens step by step: only what is open is in the document. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { LongText } from '../parts/long-text.tsx'

interface ValueTreeProps {
  readonly name: string
  readonly value: unknown
  readonly depth?: number
}

const OPEN_DEPTH = 2
const MAX_CHILDREN = 100

export function ValueTree({ name, value, depth = 0 }: ValueTreeProps): VNode {
  const [isOpen, setIsOpen] = useState(depth < OPEN_DEPTH)
  if (typeof value !== 'object' || value === null) {
    return (
      <div class="leaf">
        <span class="key">{name}</span>{' '}
        <LongText text={typeof value === 'string' ? value : JSON.stringify(value)} name={name} />
      </div>
    )
  }
  const children = Object.entries(value)
  return (
    <details open={isOpen} onToggle={({ currentTarget }) => setIsOpen(currentTarget.open)}>
      <summary>
        <span class="key">{name}</span> <span class="muted">{sizeOf(value, children.length)}</span>
      </summary>
      {isOpen && (
        <div class="branch">
          {children.slice(0, MAX_CHILDREN).map(([key, child]) => (
            <ValueTree key={key} name={key} value={child} depth={depth + 1} />
          ))}
          {children.length > MAX_CHILDREN && <p class="muted">{`The first ${MAX_CHILDREN} of ${children.length}`}</p>}
        </div>
      )}
    </details>
  )
}

function sizeOf(value: object, count: number): string {
  const noun = Array.isArray(value) ? 'item' : 'field'
  return `${count} ${noun}${count === 1 ? '' : 's'}`
}
