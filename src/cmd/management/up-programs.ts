/** Runs `hyperkube up`, `down` and `reset` for the clusters of a management server. They outlive the server. */
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { mkdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'

import type { FoundCluster, UpEndpoint, UpPrograms } from '#management/up-clusters/programs.ts'

import { type ClusterFile, readClusterFile } from '../cluster/cluster-file.ts'
import { clusterOwner } from '../cluster/cluster-lock.ts'
import { OWN_PROGRAM } from '../program-path.ts'

const MAX_OUTPUT_BYTES = 1 << 20

/** `folder` has a data directory for each cluster. */
export function createUpPrograms(folder: string, env: NodeJS.ProcessEnv): UpPrograms {
  const dirOf = (name: string): string => join(folder, name)
  const run: Run = (...args) => runOwn(args, env)
  return {
    async find(name) {
      const dir = dirOf(name)
      return existsSync(join(dir, STORE)) ? findCluster(dir) : undefined
    },
    async start(name, { runtime, nodes, forkOf }) {
      const dir = dirOf(name)
      await mkdir(dir, { recursive: true, mode: 0o700 })
      const isNew = !existsSync(join(dir, STORE))
      const snapshot = isNew && forkOf !== undefined ? snapshotOf(dirOf(forkOf), name) : undefined
      if (snapshot !== undefined) await snapshot.save(run)
      const own = [`--data-dir=${dir}`, `--kubeconfig=${join(dir, 'kubeconfig')}`]
      // The console of the server shows them.
      const flags = [...own, '--secure-port=0', '--console=false', '-o=json']
      try {
        const from = snapshot === undefined ? [] : [`--from-snapshot=${snapshot.file}`]
        await run('up', '--detach', ...flags, `--runtime=${runtime}`, `--nodes=${nodes}`, ...from)
      } finally {
        await snapshot?.remove()
      }
    },
    async stop(name) {
      await run('down', `--data-dir=${dirOf(name)}`)
    },
    async remove(name) {
      const dir = dirOf(name)
      if (!existsSync(dir)) return
      await run('reset', '--snapshots', `--data-dir=${dir}`)
      await rm(dir, { recursive: true, force: true })
    },
  }
}

const STORE = 'store.db'

async function findCluster(dir: string): Promise<FoundCluster> {
  const owner = await clusterOwner(dir)
  const file = await readClusterFile(dir)
  const isRunning = owner !== undefined && file?.pid === owner.pid
  return { endpoint: isRunning ? await endpointOf(file, join(dir, 'pki')) : undefined }
}

async function endpointOf({ apiServer: url }: ClusterFile, pki: string): Promise<UpEndpoint> {
  const names = ['ca.crt', 'front-proxy-client.crt', 'front-proxy-client.key']
  const [ca = '', certificate = '', key = ''] = await Promise.all(
    names.map((name) => readFile(join(pki, name), 'utf8')),
  )
  return { url, ca, certificate, key }
}

type Run = (...args: readonly string[]) => Promise<string>

/** A snapshot for a fork. It lies beside the encryption key of the cluster, where `up --from-snapshot` looks for the key. */
function snapshotOf(
  dir: string,
  fork: string,
): { readonly file: string; save(run: Run): Promise<void>; remove(): Promise<void> } {
  const name = `fork-${fork}`
  const file = join(dir, 'snapshots', `${name}.snapshot`)
  const remove = async (): Promise<void> => {
    for (const path of [file, `${file}.json`]) await rm(path, { force: true })
  }
  return {
    file,
    remove,
    async save(run) {
      // A server that was killed leaves one behind.
      await remove()
      await run('snapshot', 'save', name, `--data-dir=${dir}`)
    },
  }
}

/** Resolves with the standard output. Rejects with the messages of the program. */
function runOwn(args: readonly string[], env: NodeJS.ProcessEnv): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>()
  execFile(OWN_PROGRAM, args, { env, maxBuffer: MAX_OUTPUT_BYTES }, (error, stdout, stderr) => {
    if (error === null) resolve(stdout)
    else reject(new Error(stderr.trim() || error.message, { cause: error }))
  })
  return promise
}
