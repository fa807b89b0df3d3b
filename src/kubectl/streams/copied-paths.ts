/** Paths of `cp`: which side a file is on, and what of an archive may be written where. Pure. */
import { posix } from 'node:path'

import { KubectlError } from '../errors.ts'

export interface FileSpec {
  readonly namespace: string
  /** Empty: the file is on this machine. */
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

/** Paths of a container are those of Linux, whoever writes them. */
export function remotePath(text: string): string {
  return withoutTrailingSlash(text).replaceAll('\\', '/')
}

function withoutTrailingSlash(text: string): string {
  return text !== '/' && text.endsWith('/') ? text.slice(0, -1) : text
}

/** What the names in an archive of this file begin with: tar leaves out the slash, and what climbs. */
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

/** Whether the file is the target or below it, whatever is in its name. */
export function isWithin(target: string, file: string): boolean {
  if (posix.isAbsolute(target) !== posix.isAbsolute(file)) return false
  const relative = posix.relative(posix.resolve('/', target), posix.resolve('/', file))
  // Both stay as they are when they climb above where we are.
  if (posix.normalize(target).startsWith('..') !== posix.normalize(file).startsWith('..')) return false
  return relative === '' || !(relative === '..' || relative.startsWith('../'))
}
