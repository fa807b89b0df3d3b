/**
 * `hyperkube build` on machines that are namespaces of this one, each with its own network, host name, files and sshd: up, a
 * Deployment, up again, remove. Needs root, sshd, etcd, containerd and CNI's plugins.
 *
 *     node test/upstream/build.ts [--workers 1] [--control-planes 1] [--keep]
 */
import { execFile, spawn } from 'node:child_process'
import { chmod, copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs, promisify } from 'node:util'

import { stringifyYaml } from '#lib/yaml.ts'

import { HYPERKUBE } from './ours.ts'

const run = promisify(execFile)
const NETWORK = '10.199.0'
const BRIDGE = 'hkb0'

/** A constant; the folder and the name come as arguments. What the machine changes is in `upper`; containerd needs a real folder. */
const MACHINE = `
set -eu
folder=$1
hostname "$2"
mount --make-rprivate /
mkdir -p "$folder/upper" "$folder/work" "$folder/root" "$folder/lib" "$folder/run"
mount -t tmpfs none "$folder/run"
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
for each in proc sys dev; do mount --rbind "/$each" "$folder/root/$each"; done
mkdir -p "$folder/run/sshd"
mount --rbind "$folder/run" "$folder/root/run"
mount --bind "$folder/lib" "$folder/root/var/lib"
mkdir -p "$folder/root$folder/etc"
mount --bind "$folder/etc" "$folder/root$folder/etc"
exec chroot "$folder/root" /usr/sbin/sshd -D -e -f "$folder/etc/sshd_config"
`

const { values: options } = parseArgs({
  options: {
    workers: { type: 'string', default: '1' },
    'control-planes': { type: 'string', default: '1' },
    keep: { type: 'boolean', default: false },
  },
})

interface Place {
  readonly name: string
  readonly address: string
  readonly folder: string
  readonly namespace: string
}

async function makeMachine(place: Place, index: number, key: string, closing: AsyncDisposableStack): Promise<void> {
  const { name, address, folder, namespace } = place
  const link = `hkbv${index}`
  await run('ip', ['netns', 'add', namespace])
  closing.defer(async () => void (await run('ip', ['netns', 'del', namespace]).catch(() => undefined)))
  await run('ip', ['link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', namespace])
  closing.defer(async () => void (await run('ip', ['link', 'del', link]).catch(() => undefined)))
  await run('ip', ['link', 'set', link, 'master', BRIDGE, 'up'])
  for (const args of [
    ['addr', 'add', `${address}/24`, 'dev', 'eth0'],
    ['link', 'set', 'eth0', 'up'],
    ['link', 'set', 'lo', 'up'],
    ['route', 'add', 'default', 'via', `${NETWORK}.1`],
  ])
    await run('ip', ['-n', namespace, ...args])
  const etc = join(folder, 'etc')
  await mkdir(etc, { recursive: true })
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', join(etc, 'host')])
  await copyFile(`${key}.pub`, join(etc, 'authorized'))
  await chmod(join(etc, 'authorized'), 0o600)
  const config = [
    `ListenAddress ${address}`,
    `HostKey ${join(etc, 'host')}`,
    `AuthorizedKeysFile ${join(etc, 'authorized')}`,
    'PermitRootLogin prohibit-password',
    'PasswordAuthentication no',
    'PidFile none',
    'StrictModes no',
    'UsePAM no',
    '',
  ]
  await writeFile(join(etc, 'sshd_config'), config.join('\n'))
  const within = ['--net=/run/netns/' + namespace, 'unshare', '--mount', '--uts']
  const child = spawn('nsenter', [...within, 'sh', '-c', MACHINE, 'sh', folder, name], { stdio: 'ignore' })
  closing.defer(() => void child.kill('SIGTERM'))
}

async function hyperkube(cwd: string, ...args: string[]): Promise<string> {
  process.stdout.write(`$ hyperkube ${args.join(' ')}\n`)
  const { stdout } = await run(HYPERKUBE, args, { cwd, maxBuffer: 1 << 26 })
  process.stdout.write(stdout)
  return stdout
}

const DEPLOYMENT = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { name: 'quiet' },
  spec: {
    replicas: 2,
    selector: { matchLabels: { app: 'quiet' } },
    template: {
      metadata: { labels: { app: 'quiet' } },
      // The one image that every node has without a registry.
      spec: { containers: [{ name: 'quiet', image: 'hyperkube.local/pause:1', imagePullPolicy: 'Never' }] },
    },
  },
}

async function main(): Promise<void> {
  await using closing = new AsyncDisposableStack()
  const folder = await mkdtemp(join(tmpdir(), 'hyperkube-build-'))
  closing.defer(() => (options.keep ? undefined : rm(folder, { recursive: true, force: true })))
  const key = join(folder, 'id')
  await run('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', key])
  await run('ip', ['link', 'add', BRIDGE, 'type', 'bridge'])
  closing.defer(async () => void (await run('ip', ['link', 'del', BRIDGE])))
  await run('ip', ['addr', 'add', `${NETWORK}.1/24`, 'dev', BRIDGE])
  await run('ip', ['link', 'set', BRIDGE, 'up'])
  const planes = Number(options['control-planes'])
  const places = Array.from({ length: planes + Number(options.workers) }, (_, at): Place => {
    const name = `m${at + 1}`
    return { name, address: `${NETWORK}.${11 + at}`, folder: join(folder, name), namespace: `hkb-${at + 1}` }
  })
  for (const [at, place] of places.entries()) await makeMachine(place, at + 1, key, closing)
  const nodes = places.map(({ name, address }, at) => ({
    address,
    user: 'root',
    hostname_override: name,
    role: at < planes ? ['controlplane', 'etcd'] : ['worker'],
  }))
  const none = { provider: 'none' }
  const cluster = {
    ssh_key_path: key,
    nodes,
    network: { plugin: 'flannel' },
    ingress: none,
    monitoring: none,
    dns: none,
  }
  await writeFile(join(folder, 'cluster.yml'), stringifyYaml(cluster))
  await writeFile(join(folder, 'quiet.json'), JSON.stringify(DEPLOYMENT))
  const kubectl = (...args: string[]): Promise<string> =>
    hyperkube(folder, 'kubectl', '--kubeconfig=kube_config_cluster.yml', ...args)
  await hyperkube(folder, 'build', 'up')
  await kubectl('get', 'nodes', '-o', 'wide')
  await kubectl('apply', '-f', 'quiet.json')
  await kubectl('rollout', 'status', 'deployment/quiet', '--timeout=180s')
  await kubectl('get', 'pods', '-o', 'wide')
  const again = await hyperkube(folder, 'build', 'up')
  if (!again.includes('Nothing to do')) throw new Error('A second run has something to do')
  await hyperkube(folder, 'build', 'status')
  await hyperkube(folder, 'build', 'remove', '--force')
  for (const place of places) {
    const { stdout } = await run('find', [join(place.folder, 'upper'), '-type', 'f'])
    process.stdout.write(`${place.name} has left:\n${stdout}\n`)
  }
}

await main()
