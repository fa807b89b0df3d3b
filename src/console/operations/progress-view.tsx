/** The progress of an Operation: stages with their steps, machines, durations and last words. */
import type { VNode } from 'preact'
import { useState } from 'preact/hooks'

import { useNow } from '../browser/clock.ts'
import { formatAge } from '../parts/age.ts'
import { PlainTable } from '../parts/plain-table.tsx'
import type { Tone } from '../parts/tone.ts'
import { durationMs, type OperationStage, type OperationStep, placeOf, progressOf, stateOfStage } from './operations.ts'

const TONES: Readonly<Record<OperationStep['state'], Tone | 'none'>> = {
  Waiting: 'none',
  Running: 'busy',
  Done: 'good',
  Failed: 'bad',
}

export function ProgressView({ stages }: { readonly stages: readonly OperationStage[] }): VNode {
  const { done, total, running } = progressOf(stages)
  return (
    <section class="box" aria-label="Progress">
      <div class="page-head">
        <h3>{`${done} of ${total} steps done`}</h3>
        <progress aria-label="Steps done" value={done} max={Math.max(1, total)} />
      </div>
      {running.length > 0 && (
        <ul class="running-steps" aria-label="Steps under way">
          {running.map((step, at) => (
            <li key={at}>
              <StepLine step={step} />
            </li>
          ))}
        </ul>
      )}
      {stages.map((stage, at) => (
        <Stage key={`${at} ${stage.name}`} stage={stage} />
      ))}
    </section>
  )
}

function StepLine({ step }: { readonly step: OperationStep }): VNode {
  return (
    <>
      <strong>{placeOf(step)}</strong>
      {` ${step.describe} `}
      <Duration step={step} />
    </>
  )
}

function Duration({ step }: { readonly step: OperationStep }): VNode | null {
  const ms = durationMs(step, useNow())
  return ms === undefined ? null : <span class="muted">{formatAge(ms)}</span>
}

/** Open while there is something to see, until the user decides otherwise. */
function Stage({ stage }: { readonly stage: OperationStage }): VNode {
  const { name, steps, more = 0 } = stage
  const state = stateOfStage(stage)
  const [wanted, setWanted] = useState<boolean>()
  const isOpen = wanted ?? (state === 'Running' || state === 'Failed')
  const done = steps.filter((step) => step.state === 'Done').length
  return (
    <div class="stage">
      <button type="button" class="quiet stage-head" aria-expanded={isOpen} onClick={() => setWanted(!isOpen)}>
        <span aria-hidden="true">{isOpen ? '▾' : '▸'}</span>
        <strong>{name}</strong>
        <span class={`tone tone-${TONES[state]}`}>{state}</span>
        <span class="muted">{`${done} of ${steps.length + more}`}</span>
      </button>
      {isOpen && (
        <PlainTable
          label={`Steps of ${name}`}
          columns={['Machine', 'Step', 'State', 'Duration', 'Message']}
          rows={steps}
          cells={(step) => [
            placeOf(step),
            <span class="words">{step.describe}</span>,
            <span class={`tone tone-${TONES[step.state]}`}>{step.state}</span>,
            <Duration step={step} />,
            <span class={`words ${step.state === 'Failed' ? 'words-bad' : ''}`}>{step.message}</span>,
          ]}
        />
      )}
    </div>
  )
}
