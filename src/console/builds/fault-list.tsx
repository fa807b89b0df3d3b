/** Why a form or a cluster file was refused, with all faults. */
import type { VNode } from 'preact'

import type { RequestError } from '../api/request.ts'
import { wordsOf } from './file-schema.ts'

interface FaultListProps {
  readonly title: string
  readonly faults: readonly string[]
}

export function FaultList({ title, faults }: FaultListProps): VNode | null {
  if (faults.length === 0) return null
  return (
    <div class="refusal" role="alert">
      <p>
        <strong>{title}</strong>
      </p>
      <ul>
        {faults.map((fault) => (
          <li key={fault} class="words">
            {fault}
          </li>
        ))}
      </ul>
    </div>
  )
}

/** The server's words, fault by fault if it names several. */
export function Refusal({ error }: { readonly error: RequestError }): VNode {
  const causes = error.status.details?.causes ?? []
  const faults = causes.map(({ field = '', message = '' }) => {
    const path = field.replace(/^file\.?/, '')
    return path === '' ? wordsOf(message) : `${path}: ${wordsOf(message)}`
  })
  if (faults.length === 0) return <FaultList title="The server refused" faults={[error.message]} />
  return <FaultList title="The cluster file has faults" faults={faults} />
}
