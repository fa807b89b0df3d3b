/** Compares the metric families of two programs: names, types and labels. */

export interface FamilyShape {
  readonly type: string
  /** Sorted, without those of the format. */
  readonly labels: string
}

/** Why families of upstream's are not shown here, by how their names begin. */
export type Missing = readonly (readonly [names: RegExp, why: string])[]

/** Prints families that are missing for a reason, and returns all other differences. */
export function compareFamilies(
  mine: ReadonlyMap<string, FamilyShape>,
  reference: ReadonlyMap<string, FamilyShape>,
  missing: Missing,
): string[] {
  const differences: string[] = []
  for (const [name, { type, labels }] of [...reference].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const own = mine.get(name)
    const reason = missing.find(([names]) => names.test(name))?.[1]
    if (own === undefined && reason === undefined)
      differences.push(`missing without a reason: ${name} (${type} of ${labels})`)
    else if (own === undefined) process.stdout.write(`missing: ${name}: ${reason}\n`)
    else if (own.type !== type || own.labels !== labels) {
      differences.push(`${name}: ${own.type} of ${own.labels}, upstream ${type} of ${labels}`)
    }
  }
  return differences
}

/** By name, the type and labels that the exposition shows. */
export function familiesOf(text: string): Map<string, FamilyShape> {
  const types = new Map([...text.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type = '']) => [name, type]))
  const labels = new Map<string, Set<string>>()
  for (const [, sample = '', list = ''] of text.matchAll(/^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? \S+$/gm)) {
    const name = types.has(sample) ? sample : sample.replace(/_(?:bucket|sum|count)$/, '')
    const known = labels.get(name) ?? new Set<string>()
    for (const [, label = ''] of list.matchAll(/(?:^|,)(\w+)="/g))
      if (label !== 'le' && label !== 'quantile') known.add(label)
    labels.set(name, known)
  }
  return new Map(
    [...types].map(([name, type]) => [name, { type, labels: [...(labels.get(name) ?? [])].sort().join(',') }]),
  )
}
