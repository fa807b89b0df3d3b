/**
 * Extracts programs from Debian packages for images, with the libraries that they need. Packages are downloaded and
 * unpacked, never installed, and nothing of them enters the repository.
 */
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  realpathSync,
  renameSync,
  rmSync,
  lstatSync,
} from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join, resolve } from 'node:path'

import type { LayerFile } from './layer.ts'

const CACHE = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'hyperkube', 'images')

/** Packages that are only there to be installed. */
const NOT_NEEDED =
  /^(?:adduser|debconf.*|dpkg|gcc-12-base|init-system-helpers|install-info|libperl.*|lsb-base|media-types|passwd|perl.*|sysvinit-utils|tar|ucf|sensible-utils|cdebconf|gawk|mawk|original-awk|libdebian-installer4|libnewt0.52|libslang2|libtextwrap1|debianutils|base-files)$/

/** A folder with the packages and all they depend on, unpacked. Throws with apt's words. */
export function unpacked(packages: readonly string[], say: (line: string) => void): string {
  const root = join(CACHE, packages.join('+'))
  if (existsSync(root)) return root
  say(`downloading ${packages.join(', ')} of Debian, with what they need`)
  mkdirSync(CACHE, { recursive: true })
  const debs = mkdtempSync(join(CACHE, 'debs-'))
  const unfinished = `${root}.${process.pid}`
  try {
    // As another user, apt could not write into the folder.
    run('apt-get', ['-o', 'APT::Sandbox::User=root', 'download', ...closure(packages)], debs)
    mkdirSync(unfinished)
    for (const deb of readdirSync(debs)) run('dpkg-deb', ['-x', join(debs, deb), unfinished])
    renameSync(unfinished, root)
  } finally {
    for (const folder of [debs, unfinished]) rmSync(folder, { recursive: true, force: true })
  }
  return root
}

function closure(packages: readonly string[]): string[] {
  const only = ['recommends', 'suggests', 'conflicts', 'breaks', 'replaces', 'enhances'].map((one) => `--no-${one}`)
  const text = run('apt-cache', ['depends', '--recurse', ...only, ...packages])
  const names = text.split('\n').filter((line) => /^[a-z0-9]/.test(line) && !line.includes(':i386'))
  return [...new Set(names.filter((name) => !NOT_NEEDED.test(name)))]
}

function run(program: string, args: readonly string[], cwd?: string): string {
  return execFileSync(program, args, {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'inherit'],
    ...(cwd !== undefined && { cwd }),
  })
}

/** Files of an unpacked folder, programs with their libraries; `a => b` puts file a where b is said. */
export function filesOf(root: string, wanted: readonly string[]): LayerFile[] {
  const files = wanted.flatMap((one) => {
    const [path = '', as = path] = one.split(' => ')
    const from = within(root, path)
    const file = { path: as, from, mode: lstatSync(from).mode & 0o777 }
    return isProgram(from) ? [file, ...librariesOf(root, from)] : [file]
  })
  return [...new Map(files.map((file) => [file.path, file])).values()]
}

/** Where links within the folder lead; those from its root are meant to be from the image's. */
function within(root: string, path: string): string {
  let at = join(root, path)
  for (let hops = 0; hops < 10 && lstatSync(at).isSymbolicLink(); hops++) {
    const link = readlinkSync(at)
    at = link.startsWith('/') ? join(root, link) : resolve(dirname(at), link)
  }
  return realpathSync(at)
}

function isProgram(file: string): boolean {
  return readFileSync(file).subarray(0, 4).toString('latin1') === '\x7fELF'
}

const LOADERS = ['lib64/ld-linux-x86-64.so.2', 'lib/ld-linux-aarch64.so.1']

/** The loader of the folder itself says what it would load; a program without one needs nothing. */
function librariesOf(root: string, program: string): LayerFile[] {
  const loader = LOADERS.find((one) => existsSync(join(root, one)))
  if (loader === undefined) return []
  const folders = ['lib', 'usr/lib'].flatMap((lib) =>
    readdirSync(join(root, lib))
      .filter((name) => name.endsWith('-linux-gnu'))
      .map((name) => join(root, lib, name)),
  )
  let listed: string
  try {
    listed = execFileSync(within(root, loader), ['--library-path', folders.join(':'), '--list', program], {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  } catch {
    // Linked statically.
    return []
  }
  if (/not found/.test(listed)) throw new Error(`${program} lacks a library:\n${listed}`)
  const libraries = [...listed.matchAll(/=> (\S+) \(/g)].flatMap(([, path = '']) =>
    path.startsWith(root) ? [path] : [],
  )
  return [...libraries, join(root, loader)].map((path) => ({
    path: path.slice(root.length + 1),
    from: within(root, path.slice(root.length + 1)),
    mode: 0o755,
  }))
}
