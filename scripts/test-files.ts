/** Which tests there are, in the two kinds that are run differently. */
import { globSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')

/**
 * Tests that start processes or write to disks. They run each file in a process of its own; unit tests share one, which
 * takes less than half the time.
 */
const REAL_WORLD = ['test/**/*.test.ts', 'src/storage/{etcd,sqlite}*.test.ts', 'src/storage/{etcd,sqlite}/**/*.test.ts']
const UNIT = ['src/**/*.test.ts', 'scripts/**/*.test.ts']

export interface TestFiles {
  readonly unit: readonly string[]
  readonly realWorld: readonly string[]
}

export function findTestFiles(): TestFiles {
  const realWorld = find(REAL_WORLD)
  return { realWorld, unit: find(UNIT).filter((file) => !realWorld.includes(file)) }
}

function find(patterns: readonly string[]): string[] {
  return patterns.flatMap((pattern) => globSync(pattern, { cwd: ROOT })).sort()
}
