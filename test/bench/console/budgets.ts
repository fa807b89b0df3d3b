/** The budgets of the console (docs/console.md), with figures that are measured in the browser. */
import type { Table } from '../table.ts'
import { figure } from '../table.ts'

interface Budget {
  readonly name: string
  readonly unit: string
  readonly atMost: number
}

type Name =
  | 'firstPageKb'
  | 'firstPaintMs'
  | 'firstRowsMs'
  | 'completeMs'
  | 'sortMs'
  | 'filterMs'
  | 'frameMs'
  | 'pageHeapMb'
  | 'privateMb'
  | 'residentMb'
  | 'lagMs'
  | 'rendererPercent'

/** In the order of the table. */
const BUDGETS: Readonly<Record<Name, Budget>> = {
  firstPageKb: { name: 'first page, gzip', unit: 'kB', atMost: 200 },
  firstPaintMs: { name: 'first contentful paint', unit: 'ms', atMost: 1000 },
  firstRowsMs: { name: 'first rows of the list', unit: 'ms', atMost: 1000 },
  completeMs: { name: 'complete list', unit: 'ms', atMost: 4000 },
  sortMs: { name: 'sort by a column', unit: 'ms', atMost: 100 },
  filterMs: { name: 'filter', unit: 'ms', atMost: 100 },
  frameMs: { name: 'longest frame while scrolling', unit: 'ms', atMost: 50 },
  pageHeapMb: { name: 'heap of the page', unit: 'MB', atMost: 10 },
  privateMb: { name: 'memory of the tab, without what it shares', unit: 'MB', atMost: 250 },
  residentMb: { name: 'memory of the tab, with the program of the browser', unit: 'MB', atMost: 350 },
  lagMs: { name: 'from a change to its row, at the end of the updates', unit: 'ms', atMost: 1000 },
  rendererPercent: { name: 'processor while updates come', unit: '% of a core', atMost: 25 },
}

export type Measured = Readonly<Partial<Record<Name, number>>>

export function budgetTable(title: string, ours: Measured, plain: Measured): Table {
  const names = Object.keys(BUDGETS) as Name[]
  const missed = names.filter((name) => (ours[name] ?? 0) > BUDGETS[name].atMost)
  const cell = (value: number | undefined): string => (value === undefined ? '-' : figure(value))
  return {
    title,
    columns: ['', 'budget', 'console', 'within', 'plain page'],
    rows: names.map((name) => {
      const { name: text, unit, atMost } = BUDGETS[name]
      const isWithin = missed.includes(name) ? 'no' : 'yes'
      return [`${text} (${unit})`, figure(atMost), cell(ours[name]), isWithin, cell(plain[name])]
    }),
    notes: ['The plain page reads all objects as JSON and draws a row for each, as other dashboards do.'],
    missesGoal: missed.length > 0,
    result:
      missed.length === 0
        ? `all ${names.length} budgets are kept`
        : `${names.length - missed.length} of ${names.length} budgets are kept; missed: ${missed.map((name) => `${BUDGETS[name].name} ${cell(ours[name])} ${BUDGETS[name].unit}`).join(', ')}`,
  }
}
