/** A plan: its steps with their machines, its faults and notes. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { PlainTable } from '../parts/plain-table.tsx'
import { machinesIn, type OperationPlan, placeOf, type PlannedStep } from './operations.ts'

export function PlanView({ plan }: { readonly plan: OperationPlan }): VNode {
  const { steps, more = 0, faults = [], notes = [] } = plan
  const machines = machinesIn(steps)
  const [machine, setMachine] = useState('')
  const numbered = steps.map((step, at) => ({ ...step, number: at + 1 }))
  const shown = numbered.filter(({ host }) => machine === '' || host === machine)
  return (
    <section class="box" aria-label="Plan">
      <div class="page-head">
        <h3>{summaryOf(steps, more)}</h3>
        {machines.length > 1 && (
          <select
            aria-label="Machine"
            value={machine}
            onChange={({ currentTarget }) => setMachine(currentTarget.value)}
          >
            <option value="">All machines</option>
            {machines.map((one) => (
              <option key={one} value={one}>
                {one}
              </option>
            ))}
          </select>
        )}
      </div>
      <Lines title="The plan cannot be applied" lines={faults} tone="bad" />
      <Lines title="Notes" lines={notes} tone="busy" />
      {shown.length > 0 && (
        <PlainTable
          label="Steps of the plan"
          columns={['#', 'Machine', 'Step']}
          rows={shown}
          cells={(step) => [step.number, placeOf(step), <span class="words">{step.describe}</span>]}
        />
      )}
    </section>
  )
}

function summaryOf(steps: readonly PlannedStep[], more: number): string {
  const count = steps.length + more
  if (count === 0) return 'The plan has no steps: the machines fit the file'
  const machines = machinesIn(steps).length
  return `The plan: ${count} ${count === 1 ? 'step' : 'steps'} on ${machines} ${machines === 1 ? 'machine' : 'machines'}`
}

interface LinesProps {
  readonly title: string
  readonly lines: readonly string[]
  readonly tone: 'bad' | 'busy'
}

function Lines({ title, lines, tone }: LinesProps): VNode | null {
  if (lines.length === 0) return null
  return (
    <div class={`words-${tone}`}>
      <h4>{title}</h4>
      <ul>
        {lines.map((line) => (
          <li key={line} class="words">
            {line}
          </li>
        ))}
      </ul>
    </div>
  )
}
