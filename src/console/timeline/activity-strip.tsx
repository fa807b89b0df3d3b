/** Bars of the events of each minute of the last hour. Warnings are at the bottom of a bar. */
import type { VNode } from 'preact'

import type { Activity } from './minutes.ts'

const WIDTH = 8
const GAP = 2
const HEIGHT = 40

export function ActivityStrip({ activity }: { readonly activity: readonly Activity[] }): VNode {
  const most = Math.max(1, ...activity.map(({ normal, warnings }) => normal + warnings))
  const high = (count: number): number => (HEIGHT * count) / most
  const total = activity.reduce((sum, { normal, warnings }) => sum + normal + warnings, 0)
  const bad = activity.reduce((sum, { warnings }) => sum + warnings, 0)
  const label = `The last ${activity.length} minutes: ${total} events, ${bad} of them warnings`
  return (
    <figure class="activity">
      <svg
        role="img"
        aria-label={label}
        viewBox={`0 0 ${activity.length * (WIDTH + GAP)} ${HEIGHT}`}
        preserveAspectRatio="none"
      >
        {activity.map(({ startMs, normal, warnings }, at) => (
          <g key={startMs}>
            <rect class="activity-normal" {...boxOf(at, high(normal), high(warnings))} />
            <rect class="activity-warnings" {...boxOf(at, high(warnings), 0)} />
          </g>
        ))}
      </svg>
      <figcaption class="muted">{label}</figcaption>
    </figure>
  )
}

interface Box {
  readonly x: number
  readonly y: number
  readonly width: number
  readonly height: number
}

function boxOf(at: number, height: number, below: number): Box {
  return { x: at * (WIDTH + GAP), y: HEIGHT - below - height, width: WIDTH, height }
}
