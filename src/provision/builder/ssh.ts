/** Reads the SSH settings of cluster.yml: address, credentials and options of each machine. */
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { homedir, tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

import { ProgramError } from '#lib/program.ts'

import { Connections } from '../apply/connections.ts'
import type { ClusterFile, ClusterNode, SshAccess } from '../cluster.ts'
import type { Payload } from '../payload.ts'
import type { SshTarget } from '../ssh/config.ts'
import { connectBySsh } from '../ssh/connect.ts'
import { readKnownHosts } from '../ssh/known-hosts.ts'

export interface SshOptions {
  readonly cluster: ClusterFile
  /** The machines of this file and of the last one. */
  readonly nodes: readonly ClusterNode[]
  readonly home: string
  readonly knownHostsFile: string
  readonly usesAgent: boolean
  /** All machines are the local machine. */
  readonly isHere: boolean
  readonly payload: (kind: string) => Promise<Payload>
  readonly env: Readonly<Record<string, string | undefined>>
  readonly cwd: string
  readonly say: (text: string) => void
  /** True if every call to a machine is logged. */
  readonly traces: boolean
  readonly signal: AbortSignal
}

const PASSPHRASE = 'HYPERKUBE_SSH_PASSPHRASE'
const CONNECT_SECONDS = 15
/** A constant: the passphrase itself is only in the environment of `ssh`. */
const ASKPASS = `#!/bin/sh\nprintf "%s\\n" "$${PASSPHRASE}"\n`

export async function openConnections(options: SshOptions, closing: AsyncDisposableStack): Promise<Connections> {
  const { cluster, nodes, env, knownHostsFile, home, payload, isHere, signal, say } = options
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-build-'))
  closing.defer(() => rm(folder, { recursive: true, force: true }))
  const hasPassphrase = env[PASSPHRASE] !== undefined
  const askpass = join(folder, 'askpass')
  await writeFile(askpass, ASKPASS, { mode: 0o700 })
  await chmod(askpass, 0o700)
  const sshEnv = { ...env, SSH_ASKPASS: askpass, SSH_ASKPASS_REQUIRE: hasPassphrase ? 'force' : 'never' }
  const asTarget = (name: string, access: SshAccess & { readonly address: string }): Promise<SshTarget> =>
    targetOf(name, access, folder, options)
  const bastion = cluster.bastion_host && (await asTarget('bastion', cluster.bastion_host))
  const shown = new Set(await known(knownHostsFile))
  const connect = async (name: string, installs: boolean): ReturnType<typeof connectBySsh> => {
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
        knownHostsFile,
        hasPassphrase,
        connectSeconds: CONNECT_SECONDS,
        env: sshEnv,
      },
      signal,
    )
    for (const key of await known(knownHostsFile)) {
      if (!shown.has(key)) say(`New machine: ${key}`)
      shown.add(key)
    }
    return connected
  }
  const connections = new Connections(
    connect,
    options.traces ? (name, call) => say(`[trace] ${name}: ${call}`) : undefined,
  )
  closing.use(connections)
  return connections
}

async function known(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch(() => '')
  return readKnownHosts(text).map(({ host, type, fingerprint }) => `${host} ${type} ${fingerprint}`)
}

/** Settings of a node override those of the cluster. Inline keys are written to files while the program runs. */
async function targetOf(
  name: string,
  access: SshAccess & { readonly address: string },
  folder: string,
  { cluster, usesAgent, env, cwd }: SshOptions,
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
    : await file(access.ssh_key, access.ssh_key_path ?? cluster.ssh_key_path, '.key')
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
