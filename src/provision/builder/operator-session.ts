/** The session of a `hyperkube build` command: files beside the operator's cluster.yml, and SSH. */
import { readFile } from 'node:fs/promises'
import { basename, delimiter, dirname, join, resolve } from 'node:path'

import { writeFileAtomically } from '#lib/files/atomic-file.ts'
import { type ProgramContext, ProgramError } from '#lib/program.ts'

import type { ClusterFile } from '../cluster.ts'
import { formatFault, readClusterFile } from '../file/cluster-file.ts'
import type { Bundle } from '../pki/bundle.ts'
import { readCustomBundle } from '../pki/custom.ts'
import { stateFileOf } from '../state/state.ts'
import { readCertificateFolder } from './certificate-folder.ts'
import { answeringPlane } from './find-api.ts'
import { apiOfKubeconfig } from './open-api.ts'
import { ownFiles } from './operator-files.ts'
import { payloads } from './payloads.ts'
import type { Change, RunKubectl, StateStore } from './session-options.ts'
import { openSession, type Session } from './session.ts'
import type { BuildSettings, CertificateSettings } from './settings.ts'
import { sshMachines } from './ssh.ts'
import { thisMachine } from './this-machine.ts'

export interface OperatorOptions extends Omit<ProgramContext, 'path' | 'args'> {
  readonly flags: BuildSettings & Partial<CertificateSettings>
  readonly say: (text: string) => void
  /** Runs kubectl. Rejects with ProgramError and the output of a failed command. */
  readonly kubectl: RunKubectl
  /** The stages of certificates and keys; by default those that the file requires. */
  readonly change?: Change
}

export interface OperatorSession extends Session {
  readonly files: SessionFiles
}

interface SessionFiles {
  readonly config: string
  readonly state: string
  readonly kubeconfig: string
  readonly knownHosts: string
  /** The folder with signed certificates and signing requests. */
  readonly certificates: string
}

/** Throws ProgramError for mistakes in the files. */
export async function openOperatorSession(
  options: OperatorOptions,
  closing: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<OperatorSession> {
  const { clock, random, kubectl, env, cwd, flags, say, change } = options
  const files = sessionFiles(configPath(options))
  const cluster = await readCluster(files.config, options)
  const custom = await customBundle(cluster, files, options)
  const session = await openSession(
    {
      cluster,
      state: stateFile(files.state, env),
      openMachines: sshMachines({
        knownHosts: { file: files.knownHosts },
        usesAgent: flags['ssh-agent-auth'],
        isHere: flags.local,
        traces: flags.trace,
        payload: payloads(cacheFolder(env), env),
        env,
        cwd,
        say,
      }),
      openApi: (wanted, stack) =>
        apiOfKubeconfig({ clock, env, cwd, kubectl, kubeconfig: files.kubeconfig }, wanted, stack),
      findApi: answeringPlane(clock),
      writeKubeconfig: (text) => writeFileAtomically(files.kubeconfig, text, { mode: 0o600 }),
      own: await ownFiles(cluster, files.config, options),
      ...(custom !== undefined && { custom }),
      ...(change !== undefined && { change }),
      clock,
      random,
    },
    closing,
    signal,
  )
  return { ...session, files }
}

/** RKE's file names, beside the cluster file. */
function sessionFiles(config: string): SessionFiles {
  const stem = basename(config).replace(/\.[^.]*$/, '')
  return {
    config,
    state: stateFileOf(config),
    kubeconfig: join(dirname(config), `kube_config_${basename(config)}`),
    knownHosts: join(dirname(config), `${stem}.known_hosts`),
    certificates: join(dirname(config), `${stem}_certs`),
  }
}

/** Throws ProgramError with all problems of the file. */
async function readCluster(
  path: string,
  { readFile: read, stderr, flags }: Pick<OperatorOptions, 'readFile' | 'stderr' | 'flags'>,
): Promise<ClusterFile> {
  const text = await read(path).catch((cause: NodeJS.ErrnoException) => {
    if (flags.local && cause.code === 'ENOENT') return ''
    throw new ProgramError(`Cannot read "${path}": ${cause.message}`, { cause })
  })
  const { cluster, faults, notices } = readClusterFile(text, flags.local ? await thisMachine() : undefined)
  for (const notice of notices) stderr.write(`note: ${formatFault(path, notice)}\n`)
  if (cluster === undefined)
    throw new ProgramError(
      `"${path}" is not a valid cluster file:\n${faults.map((fault) => formatFault(path, fault)).join('\n')}`,
    )
  return cluster
}

function configPath({ flags, env, cwd }: Pick<OperatorOptions, 'flags' | 'env' | 'cwd'>): string {
  return resolve(cwd, flags.config || env['RKE_CONFIG'] || 'cluster.yml')
}

function cacheFolder(env: OperatorOptions['env']): string {
  return join(env['XDG_CACHE_HOME'] ?? join(env['HOME'] ?? '/tmp', '.cache'), 'hyperkube', 'build')
}

function stateFile(path: string, env: OperatorOptions['env']): StateStore {
  const passphrase = env['HYPERKUBE_STATE_PASSPHRASE']
  return {
    read: () => readFile(path, 'utf8').catch(() => undefined),
    write: (text) => writeFileAtomically(path, text, { mode: 0o600 }),
    ...(passphrase !== undefined && { passphrase }),
  }
}

/** The certificates from an external authority, with `--custom-certs`. */
async function customBundle(
  cluster: ClusterFile,
  files: SessionFiles,
  { flags, cwd }: OperatorOptions,
): Promise<Bundle | undefined> {
  if (flags['custom-certs'] !== true) return undefined
  const folder = flags['cert-dir'] ? resolve(cwd, flags['cert-dir']) : files.certificates
  const { bundle, faults } = readCustomBundle(cluster, await readCertificateFolder(folder))
  if (faults.length > 0) throw new ProgramError(`"${folder}" is incomplete:\n  ${faults.join('\n  ')}`)
  return bundle
}

/** The folders of this machine with etcd's tools. */
export function etcdToolFolders({ flags, env }: Pick<OperatorOptions, 'flags' | 'env'>): readonly string[] {
  const etcd = flags['etcd-binary']
  return [...(etcd === '' ? [] : [dirname(etcd)]), ...(env['PATH'] ?? '').split(delimiter)]
}
