/** Starts a real sshd on the loopback with a temporary configuration, port and keys. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, chmod, mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, type AddressInfo } from 'node:net'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

import { eventually } from '#kits/lib/eventually.ts'

const run = promisify(execFile)
const SSHD = '/usr/sbin/sshd'

export interface Sshd {
  readonly port: number
  readonly folder: string
  /** The private key that sshd accepts. */
  readonly keyFile: string
  /** The machine has another key from now on. */
  changeHostKey(): Promise<void>
}

/** Why there can be none here; undefined: there can. */
export async function whyNoSshd(): Promise<string | undefined> {
  if (process.getuid?.() !== 0) return 'only root can run sshd'
  const found = await access(SSHD).then(
    () => true,
    () => false,
  )
  return found ? undefined : 'there is no /usr/sbin/sshd'
}

export async function startSshd(closing: AsyncDisposableStack): Promise<Sshd> {
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-sshd-'))
  closing.defer(() => rm(folder, { recursive: true, force: true }))
  const [hostKey, keyFile] = [join(folder, 'host'), join(folder, 'user')]
  const makeKey = (file: string): Promise<unknown> => run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', file])
  await Promise.all([makeKey(hostKey), makeKey(keyFile)])
  await writeFile(join(folder, 'authorized'), await readFile(`${keyFile}.pub`), { mode: 0o600 })
  await mkdir('/run/sshd', { recursive: true, mode: 0o755 })
  const port = await freePort()
  const config = join(folder, 'sshd_config')
  await writeFile(
    config,
    [
      `Port ${port}`,
      'ListenAddress 127.0.0.1',
      `HostKey ${hostKey}`,
      `AuthorizedKeysFile ${join(folder, 'authorized')}`,
      `PidFile ${join(folder, 'pid')}`,
      'PermitRootLogin prohibit-password',
      'PasswordAuthentication no',
      'StrictModes no',
      'UsePAM no',
      '',
    ].join('\n'),
  )
  await chmod(folder, 0o700)
  let server = await start()
  async function start(): Promise<ReturnType<typeof spawn>> {
    const child = spawn(SSHD, ['-D', '-e', '-f', config], { stdio: 'ignore' })
    await eventually(() => accepts(port), Boolean)
    return child
  }
  const stop = async (): Promise<void> => {
    server.kill('SIGTERM')
    if (server.exitCode === null && server.signalCode === null) await once(server, 'exit')
  }
  closing.defer(stop)
  return {
    port,
    folder,
    keyFile,
    async changeHostKey() {
      await stop()
      await rm(hostKey)
      await makeKey(hostKey)
      server = await start()
    },
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  server.close()
  await once(server, 'close')
  return port
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    const end = (isSo: boolean): void => {
      socket.destroy()
      resolve(isSo)
    }
    socket.once('connect', () => end(true)).once('error', () => end(false))
  })
}
