/**
 * The kubeconfigs that `up` has changed. The list outlives the cluster's process, so that `reset` finds every entry.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'

import { writeFileAtomically } from '#lib/files/atomic-file.ts'

const NAME = 'kubeconfigs.json'

/** Call it before changing the file, so that a killed process leaves at most one name too many. */
export async function recordKubeconfig(dataDir: string, file: string): Promise<void> {
  const before = await usedKubeconfigs(dataDir)
  if (before.includes(file)) return
  await writeFileAtomically(join(dataDir, NAME), `${JSON.stringify([...before, file])}\n`, { mode: 0o600 })
}

/** Empty if none was recorded or the list cannot be read. */
export async function usedKubeconfigs(dataDir: string): Promise<readonly string[]> {
  try {
    const found: unknown = JSON.parse(await readFile(join(dataDir, NAME), 'utf8'))
    return Array.isArray(found) ? found.filter((file) => typeof file === 'string') : []
  } catch {
    return []
  }
}
