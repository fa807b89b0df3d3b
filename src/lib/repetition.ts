/** Finds repeated values in lists in linear time. */

/** Tells of each value, given in the order of its list, whether it came before. */
export function createRepetition(): (value: string) => boolean {
  const before = new Set<string>()
  return (value) => {
    if (before.has(value)) return true
    before.add(value)
    return false
  }
}

/** The first item for each key. */
export function firstByKey<T, K>(items: Iterable<T>, keyOf: (item: T) => K): Map<K, T> {
  const first = new Map<K, T>()
  for (const item of items) {
    const key = keyOf(item)
    if (!first.has(key)) first.set(key, item)
  }
  return first
}
