/** Finds the test files and sorts them into three groups, which run in different ways. */
import { globSync } from 'node:fs'
import { join } from 'node:path'

const ROOT = join(import.meta.dirname, '..')

/**
 * Tests that start processes or write to disks. They run each file in a process of its own; unit tests share one, which
 * takes less than half the time.
 */
const REAL_WORLD = [
  'test/!(kits)/**/*.test.ts',
  'src/storage/{etcd,sqlite}*.test.ts',
  'src/storage/{etcd,sqlite}/**/*.test.ts',
]
const UNIT = ['src/**/*.test.ts', 'test/kits/**/*.test.ts', 'scripts/**/*.test.ts']

/** Those of them that use what a machine has once: its containers, networks, devices and packages, or all of its time. */
const MACHINE = [
  'test/integration/{cluster,dns,kubelet,network,provision,proxy,supervisor}/**/*.test.ts',
  'test/integration/{guide,leaks,npm-start,up,up-troubles}.test.ts',
  'test/reliability/**/*.test.ts',
]

export interface TestFiles {
  readonly unit: readonly string[]
  /** Several at a time. */
  readonly servers: readonly string[]
  /** One at a time. */
  readonly machine: readonly string[]
}

export function findTestFiles(): TestFiles {
  const realWorld = find(REAL_WORLD)
  const machine = find(MACHINE)
  return {
    unit: find(UNIT).filter((file) => !realWorld.includes(file)),
    servers: realWorld.filter((file) => !machine.includes(file)),
    machine,
  }
}

function find(patterns: readonly string[]): string[] {
  return patterns.flatMap((pattern) => globSync(pattern, { cwd: ROOT })).sort()
}
