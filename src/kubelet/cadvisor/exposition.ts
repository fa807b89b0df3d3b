/** Formats `/metrics/cadvisor` in Prometheus' text format. Pure. */
import { formatFloat, renderHelp, renderLabels } from '#lib/metrics/text.ts'

import { FAMILIES, MACHINE_FAMILIES } from './families.ts'
import type { Labels, MachineFigures, Subject } from './subject.ts'

export interface CadvisorView {
  readonly subjects: readonly Subject[]
  readonly machine: MachineFigures
  /** Labels of the machine, sorted by name. */
  readonly machineLabels: Labels
  readonly nowMs: number
}

/** Families without values are omitted. */
export function cadvisorText({ subjects, machine, machineLabels, nowMs }: CadvisorView): string {
  const pages: string[] = []
  for (const [name, type, help, rows] of FAMILIES) {
    const lines = subjects.flatMap((subject) =>
      rows(subject, nowMs).map(({ value, more = [] }) => line(name, joined(subject.labels, more), value)),
    )
    if (lines.length > 0) pages.push(renderHelp({ name, help }, type), ...lines)
  }
  pages.push(...fault('container', 'container metrics, 0 otherwise'))
  for (const [name, help, figure] of MACHINE_FAMILIES) {
    pages.push(renderHelp({ name, help }, 'gauge'), line(name, machineLabels, machine[figure]))
  }
  pages.push(...fault('machine', 'machine metrics, 0 otherwise.'))
  return pages.join('')
}

/** Always 0: unreadable cgroups are omitted instead. */
function fault(of: string, what: string): string[] {
  const name = `${of}_scrape_error`
  return [renderHelp({ name, help: `1 if ${what} could not be read, 0 otherwise` }, 'gauge'), line(name, [], 0)]
}

const line = (name: string, labels: Labels, value: number): string =>
  `${name}${labels.length === 0 ? '' : `{${renderLabels(labels)}}`} ${formatFloat(value)}\n`

const joined = (labels: Labels, more: Labels): Labels =>
  more.length === 0 ? labels : [...labels, ...more].sort(([a], [b]) => (a < b ? -1 : 1))
