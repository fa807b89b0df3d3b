/** Loads files of a kustomization. Paths are relative to its folder; paths outside of the folder must be allowed. */
import { realpathSync, readFileSync, statSync } from 'node:fs'
import { basename, dirname, isAbsolute, join } from 'node:path'

import { KustomizeError } from './ids.ts'

export interface LoaderOptions {
  /** Files may be outside of the folder. */
  readonly unrestricted: boolean
  /** Downloads remote files; throws on failure. */
  readonly fetch: (url: string) => Promise<string>
}

/** Go's text for a path error. */
function goReason(error: NodeJS.ErrnoException): string {
  const reasons: Record<string, string> = {
    ENOENT: 'no such file or directory',
    EACCES: 'permission denied',
    ENOTDIR: 'not a directory',
    EISDIR: 'is a directory',
    ELOOP: 'too many levels of symbolic links',
  }
  return reasons[error.code ?? ''] ?? error.message
}

function realPath(path: string): string {
  try {
    return realpathSync(path)
  } catch (cause) {
    const error = cause as NodeJS.ErrnoException
    throw new KustomizeError(`evalsymlink failure on '${path}' : lstat ${error.path ?? path}: ${goReason(error)}`, {
      cause,
    })
  }
}

/** The real path of a folder. Throws KustomizeError. */
export function folderAt(path: string): string {
  let found: string
  try {
    found = realPath(path)
  } catch (error) {
    throw new KustomizeError(`not a valid directory: ${(error as Error).message}`, { cause: error })
  }
  if (!statSync(found).isDirectory()) throw new KustomizeError(`'${path}': file is not directory`)
  return found
}

function isWithin(path: string, folder: string): boolean {
  return folder === '/' || path === folder || path.startsWith(`${folder}/`)
}

export function isRemote(path: string): boolean {
  return path.startsWith('http://') || path.startsWith('https://')
}

/** URLs that upstream would clone. */
export function isRepository(path: string): boolean {
  if (/^(git::|gh:|git@|ssh:\/\/|file:\/\/)/.test(path)) return true
  if (/^https?:\/\//.test(path))
    return /\.git(?:[/?]|$)|\/\/|github\.com\/[^/]+\/[^/]+/.test(path.replace(/^https?:\/\//, ''))
  return /^(?:github\.com\/[^/]+\/[^/]+|[^/:]+@[^/]+:)/.test(path)
}

export class Loader {
  readonly root: string
  readonly #parent: Loader | undefined
  readonly #options: LoaderOptions

  constructor(root: string, options: LoaderOptions, parent?: Loader) {
    this.root = root
    this.#options = options
    this.#parent = parent
  }

  /** A loader for another folder. Throws KustomizeError. */
  enter(path: string): Loader {
    if (path === '') throw new KustomizeError('new root cannot be empty')
    if (isRepository(path))
      throw new KustomizeError(
        `"${path}" is a git repository; remote bases are not supported: clone it and use its folder`,
      )
    if (isAbsolute(path)) throw new KustomizeError(`new root '${path}' cannot be absolute`)
    let root: string
    try {
      root = folderAt(join(this.root, path))
    } catch (error) {
      throw new KustomizeError(`must build at directory: ${(error as Error).message}`, { cause: error })
    }
    this.#refuseCycle(root)
    return new Loader(root, this.#options, this)
  }

  #refuseCycle(root: string): void {
    if (isWithin(this.root, root)) {
      throw new KustomizeError(`cycle detected: candidate root '${root}' contains visited root '${this.root}'`)
    }
    if (this.#parent !== undefined) this.#parent.#refuseCycle(root)
  }

  /** Throws KustomizeError. */
  async load(path: string): Promise<Buffer> {
    if (isRemote(path)) return Buffer.from(await this.#options.fetch(path))
    const whole = isAbsolute(path) ? path : join(this.root, path)
    const file = this.#options.unrestricted ? whole : this.#allowed(whole)
    try {
      return readFileSync(file)
    } catch (cause) {
      const error = cause as NodeJS.ErrnoException
      const verb = error.code === 'EISDIR' ? 'read' : 'open'
      throw new KustomizeError(`${verb} ${file}: ${goReason(error)}`, { cause })
    }
  }

  #allowed(path: string): string {
    const found = realPath(path)
    if (statSync(found).isDirectory()) throw new KustomizeError(`'${path}' must resolve to a file`)
    const folder = dirname(found)
    if (!isWithin(folder, this.root)) {
      throw new KustomizeError(`security; file '${path}' is not in or below '${this.root}'`)
    }
    return join(folder, basename(found))
  }
}
