/** Says what the server answered to an edit, and offers to take over fields of other managers. */
import type { VNode } from 'preact'

import { LongText } from '../parts/long-text.tsx'
import type { Conflict } from './send-edit.ts'
import type { Outcome } from './use-editing.ts'

export interface OutcomeViewProps {
  readonly outcome: Outcome
  readonly takeOver: () => void
}

export function OutcomeView({ outcome, takeOver }: OutcomeViewProps): VNode | null {
  switch (outcome.type) {
    case 'writing':
    case 'busy':
      return null
    case 'nothing':
      return <p role="status">Nothing is changed.</p>
    case 'checked':
      return (
        <div role="status">
          <p>The server accepts the change. Nothing is stored yet.</p>
          {outcome.sent.warnings.map((warning) => (
            <p key={warning} class="words words-busy">{`Warning: ${warning}`}</p>
          ))}
        </div>
      )
    case 'refused':
      return (
        <div role="alert" class="refusal">
          <p class="words">
            <LongText text={outcome.message} name="message" />
          </p>
          {outcome.conflicts.length > 0 && <Conflicts conflicts={outcome.conflicts} takeOver={takeOver} />}
        </div>
      )
  }
}

interface ConflictsProps {
  readonly conflicts: readonly Conflict[]
  readonly takeOver: () => void
}

function Conflicts({ conflicts, takeOver }: ConflictsProps): VNode {
  return (
    <>
      <ul>
        {conflicts.map(({ field, manager }) => (
          <li key={`${manager} ${field}`}>
            <bdi>{`${manager} owns ${field}`}</bdi>
          </li>
        ))}
      </ul>
      <button type="button" class="danger" onClick={takeOver}>
        Take over and check again
      </button>
    </>
  )
}
