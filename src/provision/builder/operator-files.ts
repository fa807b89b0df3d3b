/** Reads the files on the operator's machine that a cluster needs: etcd, images, manifests. */
import { access } from 'node:fs/promises'
import { delimiter, dirname, join, resolve } from 'node:path'

import { type ProgramContext, ProgramError } from '#lib/program.ts'

import type { ClusterFile } from '../cluster.ts'
import type { DesiredInputs } from '../components/desired-cluster.ts'
import { digestOf } from '../machines/uploads.ts'
import type { BuildSettings } from './settings.ts'

type FileSources = Pick<ProgramContext, 'env' | 'readFile'> & { readonly flags: Pick<BuildSettings, 'etcd-binary'> }

/** The files to upload. */
export async function ownFiles(
  cluster: ClusterFile,
  config: string,
  options: FileSources,
): Promise<Pick<DesiredInputs, 'etcd' | 'includes' | 'archives'>> {
  const etcd = await findEtcd(options.flags['etcd-binary'], options.env)
  const [includes, archives] = await Promise.all([readIncludes(cluster, options), findArchives(cluster, config)])
  return { ...(etcd !== undefined && { etcd }), includes, archives }
}

async function findEtcd(
  path: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<{ source: string; sha256: string } | undefined> {
  const candidates = path === '' ? (env['PATH'] ?? '').split(delimiter).map((folder) => join(folder, 'etcd')) : [path]
  for (const source of candidates) {
    const isThere = await access(source).then(
      () => true,
      () => false,
    )
    if (isThere) return { source, sha256: (await digestOf(source)) ?? '' }
  }
  if (path !== '') throw new ProgramError(`There is no etcd at "${path}"`)
  return undefined
}

/** By paths relative to cluster.yml. */
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

async function readIncludes(cluster: ClusterFile, options: FileSources): Promise<Map<string, string>> {
  const texts = new Map<string, string>()
  for (const name of cluster.addons_include) {
    texts.set(name, await (/^https?:/.test(name) ? fetchManifest(name) : options.readFile(name)))
  }
  return texts
}

/** The time limit for a server that does not respond. */
const FETCH_MS = 30_000

async function fetchManifest(url: string): Promise<string> {
  try {
    const answer = await fetch(url, { signal: AbortSignal.timeout(FETCH_MS) })
    if (answer.ok) return await answer.text()
    throw new Error(`it responded with ${answer.status}`)
  } catch (error) {
    const { message, cause } = error as Error
    throw new ProgramError(`addons_include: ${url}: ${cause instanceof Error ? cause.message : message}`)
  }
}
