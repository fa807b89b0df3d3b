/** A line chart of CPU or memory over time. Everything it shows is in words and in a table too. */
import type { VNode } from 'preact'

import { amountText, type Resource, shareText } from './amount.ts'
import { type ChartData, HEIGHT, type Line, planChart, rangeOf, WIDTH } from './chart-plan.ts'

export interface ChartProps extends ChartData {
  readonly title: string
}

export function Chart(props: ChartProps): VNode {
  const { title, resource, lines, marks } = props
  const plan = planChart(props)
  return (
    <figure class="chart">
      <figcaption>{title}</figcaption>
      <Facts {...{ resource, lines, marks }} />
      <div class="chart-edge">{amountText(resource, plan.top)}</div>
      <svg
        class="chart-plot"
        viewBox={`0 0 ${WIDTH} ${HEIGHT}`}
        preserveAspectRatio="none"
        role="img"
        aria-label={summaryOf(props)}
      >
        {plan.marks.map(({ name, y }) => (
          <path key={name} class={`chart-mark ${MARK_CLASSES[name] ?? 'mark-1'}`} d={`M0 ${y}H${WIDTH}`} />
        ))}
        {plan.paths.map((d, at) => (
          <path key={lines[at]?.name} class={`chart-line line-${at + 1}`} d={d} />
        ))}
        {plan.ends.map((d, at) => (
          <path key={lines[at]?.name} class={`chart-line chart-end line-${at + 1}`} d={d} />
        ))}
      </svg>
      <div class="chart-times">
        <span>{clockTime(plan.fromMs)}</span>
        <span>{clockTime(plan.toMs)}</span>
      </div>
      <Values {...props} />
    </figure>
  )
}

/** The last value of each line, and each mark with how much of it is used. */
function Facts({ resource, lines, marks }: Pick<ChartProps, 'resource' | 'lines' | 'marks'>): VNode {
  const used = lines.reduce((sum, line) => sum + (rangeOf(line)?.last ?? 0), 0)
  return (
    <dl class="chart-facts">
      {lines.map((line, at) => (
        <div key={line.name}>
          <Swatch name={`chart-line line-${at + 1}`} />
          <dt>
            <bdi>{line.name}</bdi>
          </dt>
          <dd>{lastText(resource, line)}</dd>
        </div>
      ))}
      {marks
        .filter(({ value }) => value > 0)
        .map(({ name, value }) => (
          <div key={name}>
            <Swatch name={`chart-mark ${MARK_CLASSES[name] ?? 'mark-1'}`} />
            <dt>{name}</dt>
            <dd>{`${amountText(resource, value)} (${shareText(used, value) ?? '0 %'} used)`}</dd>
          </div>
        ))}
    </dl>
  )
}

function Swatch({ name }: { readonly name: string }): VNode {
  return (
    <svg class="swatch" viewBox="0 0 20 10" aria-hidden="true">
      <path class={name} d="M0 5H20" />
    </svg>
  )
}

const MARK_CLASSES: Readonly<Record<string, string>> = { Limits: 'mark-2', Allocatable: 'mark-3' }

function lastText(resource: Resource, line: Line): string {
  const range = rangeOf(line)
  return range === undefined ? 'not measured' : amountText(resource, range.last)
}

function summaryOf({ title, resource, lines, timesMs }: ChartProps): string {
  const [from = 0, to = 0] = [timesMs[0], timesMs.at(-1)]
  const texts = lines.map((line) => {
    const range = rangeOf(line)
    if (range === undefined) return `${line.name} is not measured`
    const { least, most, last } = range
    return `${line.name} ${amountText(resource, last)}, between ${amountText(resource, least)} and ${amountText(resource, most)}`
  })
  return `${title} from ${clockTime(from)} to ${clockTime(to)}: ${texts.join('; ')}`
}

function clockTime(timeMs: number): string {
  return new Date(timeMs).toLocaleTimeString(undefined, { hour: '2-digit', minute: '2-digit' })
}

/** Rows of the table: the newest first. */
const MAX_ROWS = 60

function Values({ title, resource, timesMs, lines }: ChartProps): VNode {
  const rows = timesMs.map((timeMs, at) => ({ timeMs, at })).toReversed()
  return (
    <details class="chart-values">
      <summary>{`Values of ${title}`}</summary>
      <div class="scroll" tabIndex={0} role="region" aria-label={`Values of ${title}`}>
        <table class="plain">
          <thead>
            <tr>
              <th scope="col">Time</th>
              {lines.map(({ name }) => (
                <th key={name} scope="col">
                  <bdi>{name}</bdi>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {rows.slice(0, MAX_ROWS).map(({ timeMs, at }) => (
              <tr key={timeMs}>
                <td>{new Date(timeMs).toLocaleTimeString()}</td>
                {lines.map(({ name, values }) => (
                  <td key={name}>{values[at] === undefined ? '–' : amountText(resource, values[at])}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </details>
  )
}
