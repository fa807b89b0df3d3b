/**
 * Lists the files of the built web console. A request can only name a file of this list, so no path leads out of the
 * folder. The list is read again when the page was built anew.
 */
import { hash } from 'node:crypto'
import { readdir, readFile, stat } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

import type { Encoding } from './accept-encoding.ts'

export interface PageFile {
  /** Without the suffix of an encoding. */
  readonly path: string
  readonly type: string
  /** The encodings for which the folder has a file. */
  readonly encodings: ReadonlySet<Encoding>
}

export interface PageFiles {
  /** The text of index.html. */
  readonly index: string
  /** Of the text. */
  readonly indexTag: string
  /** By path below the folder: `assets/main-1a2b.js`, `icon.svg`. Without index.html. */
  readonly files: ReadonlyMap<string, PageFile>
}

/** Of the package, or of a checkout after `npm run console`. */
const BUILT_PAGE = new URL('../../console/page/', import.meta.url)

const INDEX = 'index.html'

/** Files with other endings are not served. */
const TYPES: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
  svg: 'image/svg+xml',
  png: 'image/png',
  ico: 'image/x-icon',
  woff2: 'font/woff2',
  json: 'application/json',
  map: 'application/json',
  webmanifest: 'application/manifest+json',
}

const SUFFIXES: Readonly<Record<Exclude<Encoding, 'identity'>, string>> = { br: '.br', gzip: '.gz' }

export class PageFolder {
  readonly #folder: string
  #last: { readonly version: string; readonly files: PageFiles } | undefined

  constructor(folder: URL = BUILT_PAGE) {
    this.#folder = fileURLToPath(folder)
  }

  /** Undefined: the page has not been built. */
  async read(): Promise<PageFiles | undefined> {
    const found = await stat(this.#pathOf(INDEX)).catch(ignoreMissing)
    if (found === undefined) return undefined
    const version = `${found.mtimeMs}-${found.size}-${found.ino}`
    if (this.#last?.version !== version) this.#last = { version, files: await this.#list() }
    return this.#last.files
  }

  /** The path of a file in the list. */
  pathOf({ path }: PageFile, encoding: Encoding): string {
    return this.#pathOf(encoding === 'identity' ? path : `${path}${SUFFIXES[encoding]}`)
  }

  #pathOf(path: string): string {
    return `${this.#folder}${path}`
  }

  async #list(): Promise<PageFiles> {
    const index = await readFile(this.#pathOf(INDEX), 'utf8')
    const [root, assets] = await Promise.all([this.#names(''), this.#names('assets/')])
    const files = listFiles([...root, ...assets].filter((path) => path !== INDEX))
    return { index, indexTag: hash('sha256', index, 'base64url').slice(0, TAG_CHARACTERS), files }
  }

  async #names(folder: string): Promise<string[]> {
    const entries = await readdir(this.#pathOf(folder), { withFileTypes: true }).catch(ignoreMissing)
    return (entries ?? []).filter((entry) => entry.isFile()).map(({ name }) => `${folder}${name}`)
  }
}

const TAG_CHARACTERS = 22

/** The files to serve among the paths of a folder. */
export function listFiles(paths: readonly string[]): ReadonlyMap<string, PageFile> {
  const all = new Set(paths)
  return new Map(
    paths.flatMap((path): [string, PageFile][] => {
      const [, ending = ''] = /^(?:assets\/)?[\w-][\w.-]*\.([a-z\d]+)$/.exec(path) ?? []
      const type = Object.hasOwn(TYPES, ending) ? TYPES[ending] : undefined
      if (type === undefined) return []
      const encodings = (['br', 'gzip'] as const).filter((name) => all.has(`${path}${SUFFIXES[name]}`))
      return [[path, { path, type, encodings: new Set<Encoding>(encodings) }]]
    }),
  )
}

function ignoreMissing(error: unknown): undefined {
  if (!['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
  return undefined
}
