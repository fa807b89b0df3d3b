/**
 * The binaries that envtest starts: the folder of `hyperkube assets`, and upstream's programs as envtest would download
 * them.
 */
import { spawnSync } from 'node:child_process'
import { mkdir, symlink } from 'node:fs/promises'
import { join } from 'node:path'

import { HYPERKUBE } from './ours.ts'
import { upstreamPrograms } from './programs.ts'

export interface EnvtestAssets {
  readonly ours: string
  readonly theirs: string
}

/** In `folder`, which is the caller's. */
export async function envtestAssets(folder: string): Promise<EnvtestAssets> {
  const ours = spawnSync(HYPERKUBE, ['assets'], { encoding: 'utf8', env: { ...process.env, XDG_CACHE_HOME: folder } })
  return { ours: ours.stdout.trim(), theirs: await upstreamAssets(join(folder, 'upstream')) }
}

async function upstreamAssets(folder: string): Promise<string> {
  const names = ['etcd', 'kube-apiserver', 'kubectl'] as const
  const programs = await upstreamPrograms(names, (line) => process.stderr.write(`${line}\n`))
  await mkdir(folder)
  for (const [name, path] of Object.entries(programs)) await symlink(path, join(folder, name))
  return folder
}
