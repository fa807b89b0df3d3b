/**
 * Set-up, then the command: `node scripts/with-setup.mjs start|test|check|ratchet [arguments]`. Plain JavaScript for any
 * Node from 18 on, without packages, because it runs before there are any: it installs the npm packages (which bring
 * Node 26), the system packages that tests need, says what it did, and hands over.
 */
import { spawn, spawnSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { dirname, join, relative } from 'node:path'
import { fileURLToPath } from 'node:url'

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)))
const WINDOWS = process.platform === 'win32'

/** Programs that run containers. A program with a slash is a file, the first of those that is there. */
const CONTAINER_PACKAGES = [
  { program: 'containerd', aptPackage: 'containerd', needs: 'real containers' },
  { program: 'runc', aptPackage: 'runc', needs: 'real containers' },
  {
    program: '/usr/lib/cni/bridge',
    orElse: '/opt/cni/bin/bridge',
    aptPackage: 'containernetworking-plugins',
    needs: 'addresses of real pods',
  },
  { program: 'iptables', aptPackage: 'iptables', needs: 'addresses of real pods' },
  { program: 'ip', aptPackage: 'iproute2', needs: 'the network of real pods' },
  { program: 'nft', aptPackage: 'nftables', needs: 'the network of real pods' },
  { program: 'conntrack', aptPackage: 'conntrack', needs: 'flows of UDP that leave pods which have gone' },
]

/** Programs that tests drive, the Debian package of each, and what is skipped without it. */
const SYSTEM_PACKAGES = [
  { program: 'openssl', aptPackage: 'openssl', needs: 'certificates checked by a second implementation' },
  { program: 'kubectl', aptPackage: 'kubernetes-client', needs: '`hyperkube up` as kubectl sees it' },
  { program: 'etcd', aptPackage: 'etcd-server', needs: 'the etcd backend against a real etcd' },
  { program: 'etcdctl', aptPackage: 'etcd-client', needs: 'etcd snapshots and users checked with its own tool' },
  { program: 'mkfs.ext4', aptPackage: 'e2fsprogs', needs: 'power cuts and full disks on a loop image' },
  { program: 'losetup', aptPackage: 'mount', needs: 'power cuts and full disks on a loop image' },
  { program: '/usr/sbin/sshd', aptPackage: 'openssh-server', needs: 'machines reached over SSH' },
  { program: 'ssh', aptPackage: 'openssh-client', needs: 'machines reached over SSH' },
  { program: 'tcpdump', aptPackage: 'tcpdump', needs: 'packets between nodes' },
  { program: 'dbus-daemon', aptPackage: 'dbus-daemon', needs: 'the kubelet and systemd on a message bus' },
  { program: 'chromium', aptPackage: 'chromium', needs: 'the console in a browser' },
  { program: 'systemd-inhibit', aptPackage: 'systemd', needs: 'graceful node shutdown' },
  ...CONTAINER_PACKAGES,
  { program: '/bin/busybox', aptPackage: 'busybox-static', needs: 'real containers in tests' },
]

/** So many states of the sources stay bundled: a cluster may still run from one. */
const BUNDLES_KEPT = 3

/** Which Node runs what, after set-up. */
const COMMANDS = {
  start: ['bin/hyperkube', 'up'],
  test: ['scripts/gate.ts', 'test'],
  check: ['scripts/gate.ts', 'check'],
  ratchet: ['test/conformance/main.ts', '--ratchet'],
}

const [mode = '', ...rest] = process.argv.slice(2)
const command = COMMANDS[mode]
if (command === undefined) fail(`Unknown command "${mode}"; use one of: ${Object.keys(COMMANDS).join(', ')}`)
installNpmPackages()
if (mode === 'test') installSystemPackages(SYSTEM_PACKAGES)
// Who is not root has no use for them, and is told so by `up`.
if (mode === 'start' && process.platform === 'linux' && process.getuid() === 0 && !wantsNoContainers(rest))
  installSystemPackages(CONTAINER_PACKAGES)
const node = bundledNode()
if (mode === 'start') process.env.HYPERKUBE_BUNDLE = bundleOfSources(node)
handOver(node, [...command, ...rest])

/** Unless the packages of this very lock file are there already. */
function installNpmPackages() {
  const lock = createHash('sha256')
    .update(readFileSync(join(ROOT, 'package-lock.json')))
    .digest('hex')
  const stamp = join(ROOT, 'node_modules', '.hyperkube-setup')
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === lock) return
  say('Installing npm packages (npm ci)')
  const done = spawnSync('npm', ['ci', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd: ROOT,
    stdio: ['ignore', 2, 2],
    shell: WINDOWS,
  })
  if (done.status !== 0) fail('npm ci failed; see its messages above')
  writeFileSync(stamp, lock)
}

/** `up` says the same of these flags. */
function wantsNoContainers(args) {
  const line = ` ${args.join(' ')} `
  return /\s--runtime[= ]simulated\s/.test(line) || /\s--nodes[= ](?!1\s)/.test(line) || /\s(?:--help|-h)\s/.test(line)
}

/** Through apt when we are root; otherwise one line for each thing that will be skipped. */
function installSystemPackages(wanted) {
  const missing = wanted.filter(({ program, orElse }) => !isInstalled(program) && !(orElse && isInstalled(orElse)))
  if (missing.length === 0) return
  const packages = [...new Set(missing.map(({ aptPackage }) => aptPackage))]
  const mayInstall = process.getuid?.() === 0 && isInstalled('apt-get')
  if (mayInstall && aptInstall(packages)) return
  for (const { program, aptPackage, needs } of missing) {
    say(`"${program}" is not installed: skipping ${needs} (Debian: apt-get install ${aptPackage})`)
  }
}

function aptInstall(packages) {
  say(`Installing system packages (apt-get install ${packages.join(' ')})`)
  // RUNLEVEL=1 keeps Debian's packages from starting their service: tests start their own.
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', RUNLEVEL: '1' }
  const apt = (...args) => spawnSync('apt-get', ['-qq', ...args], { stdio: ['ignore', 'ignore', 2], env }).status === 0
  const install = () => apt('install', '-y', '--no-install-recommends', ...packages)
  return install() || (apt('update') && install())
}

function isInstalled(program) {
  if (program.includes('/')) return existsSync(program)
  const folders = [...(process.env.PATH ?? '').split(WINDOWS ? ';' : ':'), '/usr/sbin', '/sbin']
  return folders.some(
    (folder) => existsSync(join(folder, program)) || (WINDOWS && existsSync(join(folder, `${program}.exe`))),
  )
}

/** The Node 26 that npm brought for this platform; the running one where npm has none and it is new enough. */
function bundledNode() {
  const names = [
    `node-${WINDOWS ? 'win' : process.platform}-${process.arch}`,
    `node-bin-${process.platform}-${process.arch}`,
  ]
  for (const name of names) {
    const path = join(ROOT, 'node_modules', name, 'bin', WINDOWS ? 'node.exe' : 'node')
    if (existsSync(path)) return path
  }
  if (Number(process.versions.node.split('.')[0]) >= 24) return process.execPath
  return fail(
    `There is no Node for ${process.platform}-${process.arch} on npm; install Node 24 or newer from nodejs.org`,
  )
}

/**
 * The program as one bundle, made anew when a source has changed: it starts in half the time and memory that the sources
 * take. Each state of the sources has a folder of its own, because a cluster that runs goes on reading from its one.
 */
function bundleOfSources(node) {
  const files = [
    'package-lock.json',
    'scripts/build.ts',
    'scripts/console-bundle.ts',
    ...sourceFiles(join(ROOT, 'src')),
  ]
  const state = createHash('sha256')
  for (const file of files) {
    const { size, mtimeMs } = statSync(join(ROOT, file))
    state.update(`${file} ${size} ${mtimeMs}\n`)
  }
  // Beside dist/, because what the program reads of its package it finds from there.
  const folder = join(ROOT, `.bundle-${state.digest('hex').slice(0, 16)}`)
  const entry = join(folder, 'hyperkube.mjs')
  if (existsSync(entry)) return entry
  say('Bundling the sources')
  const unfinished = `${folder}.${process.pid}`
  const done = spawnSync(node, [join(ROOT, 'scripts', 'build.ts'), '--into', unfinished], { stdio: ['ignore', 2, 2] })
  if (done.status !== 0) fail('The sources cannot be bundled; see the messages above')
  if (!existsSync(entry)) renameSync(unfinished, folder)
  removeOldBundles()
  return entry
}

function sourceFiles(folder) {
  return readdirSync(folder, { withFileTypes: true }).flatMap((one) => {
    if (one.isDirectory()) return sourceFiles(join(folder, one.name))
    return /\.(?:suite|test)\.ts$/.test(one.name) ? [] : [relative(ROOT, join(folder, one.name))]
  })
}

function removeOldBundles() {
  const byAge = readdirSync(ROOT)
    .filter((name) => name.startsWith('.bundle-'))
    .map((name) => ({ path: join(ROOT, name), mtimeMs: statSync(join(ROOT, name)).mtimeMs }))
    .sort((a, b) => b.mtimeMs - a.mtimeMs)
  for (const { path } of byAge.slice(BUNDLES_KEPT)) rmSync(path, { recursive: true, force: true })
}

/** Runs the command as our child, passes signals on, and ends as it ends. */
function handOver(node, args) {
  const script = join(ROOT, args[0])
  const child = spawn(node, [script, ...args.slice(1)], { cwd: process.env.INIT_CWD ?? ROOT, stdio: 'inherit' })
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  // npm that is told to stop goes without telling us; what it started must not stay behind.
  const parent = process.ppid
  const lookAfterParent = () => process.ppid === parent || child.kill('SIGTERM')
  if (process.env.npm_lifecycle_event !== undefined) setInterval(lookAfterParent, 500).unref()
  child.on('exit', (code, signal) => process.exit(code ?? (signal === null ? 1 : 128)))
}

function say(text) {
  process.stderr.write(`set-up: ${text}\n`)
}

function fail(text) {
  say(text)
  process.exit(1)
}
