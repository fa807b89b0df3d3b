/** Paths of `cp`: parses file specs, and decides where entries of an archive may be written. Pure. */
import { posix } from 'node:path'

import { KubectlError } from '../errors.ts'

export interface FileSpec {
  readonly namespace: string
  /** Empty for a local file. */
  readonly pod: string
  readonly file: string
}

const MALFORMED = 'filespec must match the canonical format: [[namespace/]pod:]file/path'

/** `[[namespace/]pod:]file`. Throws KubectlError. */
export function fileSpecOf(text: string): FileSpec {
  const at = text.indexOf(':')
  if (at === 0) throw new KubectlError(MALFORMED)
  if (at < 0) return { namespace: '', pod: '', file: withoutTrailingSlash(text) }
  const pieces = text.slice(0, at).split('/')
  if (pieces.length > 2) throw new KubectlError(MALFORMED)
  const pod = pieces.at(-1) ?? ''
  return { namespace: pieces.length === 2 ? (pieces[0] ?? '') : '', pod, file: remotePath(text.slice(at + 1)) }
}

/** Paths in a container use slashes on every platform. */
export function remotePath(text: string): string {
  return withoutTrailingSlash(text).replaceAll('\\', '/')
}

function withoutTrailingSlash(text: string): string {
  return text !== '/' && text.endsWith('/') ? text.slice(0, -1) : text
}

/** The prefix of names in an archive of this file. tar removes the leading slash and parent segments. */
export function archivePrefix(file: string): string {
  return withoutClimbing(withoutTrailingSlash(posix.normalize(file.replace(/^[/\\]+/, ''))))
}

function withoutClimbing(path: string): string {
  let rest = path
  while (rest.startsWith('../')) rest = rest.slice(3)
  if (rest === '.' || rest === '..') return ''
  return rest.startsWith('/') ? rest.slice(1) : rest
}

export function joined(base: string, rest: string): string {
  return withoutTrailingSlash(posix.join(base, rest))
}

/** True if the file is the target or below it. */
export function isWithin(target: string, file: string): boolean {
  if (posix.isAbsolute(target) !== posix.isAbsolute(file)) return false
  const relative = posix.relative(posix.resolve('/', target), posix.resolve('/', file))
  // Both stay unchanged if they climb above the working directory.
  if (posix.normalize(target).startsWith('..') !== posix.normalize(file).startsWith('..')) return false
  return relative === '' || !(relative === '..' || relative.startsWith('../'))
}
