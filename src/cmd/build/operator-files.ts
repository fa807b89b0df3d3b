/** Files of the operator's machine that a cluster is made with: etcd, images, manifests. */
import { access } from 'node:fs/promises'
import { delimiter, dirname, join, resolve } from 'node:path'

import { type ProgramContext, ProgramError } from '#lib/program.ts'
import type { ClusterFile } from '#provision/cluster.ts'
import type { Given } from '#provision/desired-cluster.ts'
import { digestOf } from '#provision/machines/uploads.ts'

import type { BuildFlags } from './flags.ts'

type Asked = Pick<ProgramContext, 'env' | 'readFile'> & { readonly flags: Pick<BuildFlags, 'etcd-binary'> }

/** What of the operator's machine goes into the cluster. */
export async function ownFiles(
  cluster: ClusterFile,
  config: string,
  options: Asked,
): Promise<Pick<Given, 'etcd' | 'includes' | 'archives'>> {
  const etcd = await findEtcd(options.flags['etcd-binary'], options.env)
  const [includes, archives] = await Promise.all([readIncludes(cluster, options), findArchives(cluster, config)])
  return { ...(etcd !== undefined && { etcd }), includes, archives }
}

async function findEtcd(
  path: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ source: string; sha256: string } | undefined> {
  const places = path === '' ? (env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, 'etcd')) : [path]
  for (const source of places) {
    const isThere = await access(source).then(
      () => true,
      () => false,
    )
    if (isThere) return { source, sha256: (await digestOf(source)) ?? '' }
  }
  if (path !== '') throw new ProgramError(`There is no etcd at "${path}"`)
  return undefined
}

/** By paths that begin at cluster.yml. */
async function findArchives(
  { image_archives }: ClusterFile,
  config: string,
): Promise<{ source: string; sha256: string }[]> {
  const found = image_archives.map(async (path) => {
    const source = resolve(dirname(config), path)
    const digest = await digestOf(source)
    if (digest === undefined) throw new ProgramError(`image_archives: there is no file "${source}"`)
    return { source, sha256: digest }
  })
  return Promise.all(found)
}

async function readIncludes(cluster: ClusterFile, options: Asked): Promise<Map<string, string>> {
  const texts = new Map<string, string>()
  for (const name of cluster.addons_include) {
    texts.set(name, await (/^https?:/.test(name) ? fetchManifest(name) : options.readFile(name)))
  }
  return texts
}

/** A server that is silent holds up nobody for longer. */
const FETCH_MS = 30_000

async function fetchManifest(url: string): Promise<string> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(FETCH_MS) })
    if (answer.ok) return await answer.text()
    throw new Error(`it answers ${answer.status}`)
  } catch (error) {
    const { message, cause } = error as Error
    throw new ProgramError(`addons_include: ${url}: ${cause instanceof Error ? cause.message : message}`)
  }
}
