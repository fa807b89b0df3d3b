/** Reads the SSH settings of cluster.yml: address, credentials and options of each machine. */
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

import { ProgramError } from '#lib/program.ts'

import { type Connect, Connections } from '../apply/connections.ts'
import type { ClusterFile, SshAccess } from '../cluster.ts'
import type { Payload } from '../payload.ts'
import type { SshTarget } from '../ssh/config.ts'
import { connectBySsh } from '../ssh/connect.ts'
import { readKnownHosts } from '../ssh/known-hosts.ts'
import type { MachineTargets, OpenMachines } from './session-options.ts'

export interface SshSettings {
  readonly knownHosts: KnownHostsFile
  /** A key for machines whose file names none. */
  readonly key?: string
  readonly usesAgent: boolean
  /** All machines are the local machine. */
  readonly isHere: boolean
  readonly payload: (kind: string) => Promise<Payload>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  /** The folder for temporary files; default: that of the system. */
  readonly temporary?: string
  readonly say: (text: string) => void
  /** True if every call to a machine is logged. */
  readonly traces: boolean
}

interface KnownHostsFile {
  readonly file: string
  /** Called when the file has new keys. */
  changed?(): Promise<void>
}

/** The machines of a cluster over SSH. */
export function sshMachines(settings: SshSettings): OpenMachines {
  return async (targets, closing, signal) => {
    const connect = await openSsh(settings, targets, closing, signal)
    const connections = new Connections(connect, callTracer(settings))
    closing.use(connections)
    return connections
  }
}

function callTracer({ traces, say }: SshSettings): ((name: string, call: string) => void) | undefined {
  return traces ? (name, call) => say(`[trace] ${name}: ${call}`) : undefined
}

const PASSPHRASE = 'HYPERKUBE_SSH_PASSPHRASE'
const CONNECT_SECONDS = 15
/** A constant: the passphrase itself is only in the environment of `ssh`. */
const ASKPASS = `#!/bin/sh\nprintf "%s\\n" "$${PASSPHRASE}"\n`

/** Connects to one machine after the other. Temporary files go with `closing`. */
export async function openSsh(
  settings: SshSettings,
  { cluster, nodes, home }: MachineTargets,
  closing: AsyncDisposableStack,
  signal: AbortSignal,
): Promise<Connect> {
  const { env, knownHosts, payload, isHere, say, temporary = tmpdir() } = settings
  const folder = await mkdtemp(join(temporary, 'hyperkube-build-'))
  closing.defer(() => rm(folder, { recursive: true, force: true }))
  const hasPassphrase = env[PASSPHRASE] !== undefined
  const askpass = join(folder, 'askpass')
  await writeFile(askpass, ASKPASS, { mode: 0o700 })
  await chmod(askpass, 0o700)
  const sshEnv = { ...env, SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: hasPassphrase ? 'force' : 'never' }
  const asTarget = (name: string, access: SshAccess & { readonly address: string }): Promise<SshTarget> =>
    targetOf({ name, access, folder, cluster }, settings)
  const bastion = cluster.bastion_host && (await asTarget('bastion', cluster.bastion_host))
  const shown = new Set(await known(knownHosts.file))
  return async (name, installs) => {
    const node = nodes.find((each) => each.hostname_override === name)
    if (node === undefined) throw new ProgramError(`There is no machine "${name}"`)
    const connected = await connectBySsh(
      {
        name,
        folder,
        home,
        payload,
        installs,
        isHere,
        target: await asTarget(name, node),
        ...(bastion !== undefined && { bastion }),
        knownHostsFile: knownHosts.file,
        hasPassphrase,
        connectSeconds: CONNECT_SECONDS,
        env: sshEnv,
      },
      signal,
    )
    const fresh = (await known(knownHosts.file)).filter((key) => !shown.has(key))
    for (const key of fresh) {
      say(`New machine: ${key}`)
      shown.add(key)
    }
    if (fresh.length > 0) await knownHosts.changed?.()
    return connected
  }
}

async function known(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return readKnownHosts(text).map(({ host, type, fingerprint }) => `${host} ${type} ${fingerprint}`)
}

interface TargetPlan {
  readonly name: string
  readonly access: SshAccess & { readonly address: string }
  /** The folder for temporary files. */
  readonly folder: string
  readonly cluster: ClusterFile
}

/** Settings of a node override those of the cluster. Inline keys are written to files while the program runs. */
async function targetOf(
  { name, access, folder, cluster }: TargetPlan,
  { usesAgent, env, cwd, key: usualKey }: SshSettings,
): Promise<SshTarget> {
  const agent = env['SSH_AUTH_SOCK']
  const asksAgent = usesAgent || access.ssh_agent_auth || cluster.ssh_agent_auth
  if (asksAgent && agent === undefined) throw new ProgramError('There is no SSH agent: SSH_AUTH_SOCK is not set')
  const file = async (text: string | undefined, path: string, suffix: string): Promise<string | undefined> => {
    if (text !== undefined && text !== '') {
      const written = join(folder, `${name.replaceAll(/[^\w.-]/g, '_')}${suffix}`)
      await writeFile(written, text.endsWith('\n') ? text : `${text}\n`, { mode: 0o600 })
      return written
    }
    return path === '' ? undefined : resolve(cwd, path.replace(/^~(?=\/)/, homedir()))
  }
  const keyFile = asksAgent
    ? undefined
    : await file(access.ssh_key ?? usualKey, access.ssh_key_path ?? cluster.ssh_key_path, '.key')
  const certificateFile = await file(access.ssh_cert, access.ssh_cert_path ?? cluster.ssh_cert_path, '-cert.pub')
  return {
    address: access.address,
    port: access.port,
    user: access.user,
    ...(keyFile !== undefined && { keyFile }),
    ...(certificateFile !== undefined && { certificateFile }),
    ...(asksAgent && agent !== undefined && { agent }),
  }
}
