/**
 * Compares `/metrics/cadvisor` of our kubelet and upstream's: the containers in each family, and values that stay
 * constant.
 */

/** Families whose values are constant: limits, not usage. */
const STILL = /^container_(?:spec_|threads_max|ulimits_soft)/

/** The rows that our kubelet has for fewer subjects, each with the reason. */
const FEWER: readonly (readonly [rows: RegExp, why: string])[] = [
  [/^container_(?:file_descriptors|sockets|ulimits_soft) of (?:machine|all pods|pods? )/, 'counted of containers only'],
  [/^container_threads(?:_max)? of machine$/, 'the kernel does not count there'],
]

interface Row {
  readonly name: string
  /** `container one/c`, `pod one`, `machine`. */
  readonly of: string
  readonly value: string
}

/** Rows that only upstream has, and rows with different values. */
export function compareRows(mine: string, reference: string): string[] {
  const [ours, theirs] = [rowsOf(mine), rowsOf(reference)]
  const keyOf = ({ name, of }: Row): string => `${name} of ${of}`
  const own = new Map(ours.map((row) => [keyOf(row), row.value]))
  const families = new Set(ours.map(({ name }) => name))
  const differences = theirs.flatMap((row) => {
    const key = keyOf(row)
    const value = own.get(key)
    // Another check reports missing families.
    if (!families.has(row.name)) return []
    if (value === undefined) return FEWER.some(([rows]) => rows.test(key)) ? [] : [`missing: ${key}`]
    return STILL.test(row.name) && value !== row.value ? [`${key}: ${value}, upstream ${row.value}`] : []
  })
  return [...new Set(differences)].sort()
}

function rowsOf(page: string): Row[] {
  return [...page.matchAll(/^(container_\w+)\{(.*)\} (\S+)(?: \d+)?$/gm)].flatMap(
    ([, name = '', list = '', value = '']) => {
      const labels = new Map(
        [...list.matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)].map(([, key = '', text = '']) => [key, text]),
      )
      const of = subjectOf(labels)
      return of === undefined ? [] : [{ name, of, value }]
    },
  )
}

function subjectOf(labels: ReadonlyMap<string, string>): string | undefined {
  const [id = '', pod = '', name = '', container = ''] = ['id', 'pod', 'name', 'container'].map((key) =>
    labels.get(key),
  )
  if (pod === '') {
    if (id === '/') return 'machine'
    const last = id.split('/').at(-1)
    if (last === 'kubepods') return 'all pods'
    return last === 'burstable' || last === 'besteffort' ? `pods that are ${last}` : undefined
  }
  if (name === '') return `pod ${pod}`
  return container === '' ? `sandbox ${pod}` : `container ${pod}/${container}`
}
