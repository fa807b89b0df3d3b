/** Compares live object, edited text and the result of the dry run, two at a time, side by side. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { TextDifference } from './text-difference.tsx'

export interface ComparisonProps {
  readonly live: string
  readonly mine: string
  /** What the server would store. */
  readonly result: string
}

const SIDES = {
  'live-result': ['Live', 'Result of the dry run'],
  'live-mine': ['Live', 'Your text'],
  'mine-result': ['Your text', 'Result of the dry run'],
} as const

type Sides = keyof typeof SIDES

export function Comparison({ live, mine, result }: ComparisonProps): VNode {
  const [sides, setSides] = useState<Sides>('live-result')
  const [left, right] = SIDES[sides]
  return (
    <section class="comparison" aria-label="Comparison">
      <div class="comparison-head">
        <select
          aria-label="Compare"
          value={sides}
          onChange={({ currentTarget }) => setSides(currentTarget.value as Sides)}
        >
          {Object.entries(SIDES).map(([name, [a, b]]) => (
            <option key={name} value={name}>{`${a} → ${b}`}</option>
          ))}
        </select>
      </div>
      <TextDifference
        left={{ title: left, text: sides === 'mine-result' ? mine : live }}
        right={{ title: right, text: sides === 'live-mine' ? mine : result }}
      />
    </section>
  )
}
