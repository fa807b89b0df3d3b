/** Fakes for tests of this folder: IPAddress objects and a server's allocation state in memory. */
import type { AddressBook } from './ip-pool.ts'

export interface TestBook extends AddressBook {
  readonly names: Set<string>
}

export function createTestBook(...names: readonly string[]): TestBook {
  const taken = new Set(names)
  return {
    names: taken,
    has: (name) => taken.has(name),
    async create({ metadata: { name = '' } }) {
      if (taken.has(name)) return false
      taken.add(name)
      return true
    },
    async delete(name) {
      taken.delete(name)
    },
  }
}
