/** Validates file modes, and paths inside of volumes. */
import type { FieldError, FieldPath } from '#meta/validation/field-path.ts'

/** Permission bits of a file. */
export function validateFileMode(path: FieldPath, mode: number | undefined): FieldError[] {
  if (mode === undefined || (mode >= 0 && mode <= 0o777)) return []
  return [path.invalid(mode, 'must be a number between 0 and 0777 (octal), both inclusive')]
}

/** A path without `..`. */
export function validateNoBacksteps(path: FieldPath, text: string): FieldError[] {
  return text.split('/').includes('..') ? [path.invalid(text, "must not contain '..'")] : []
}

/** A relative path without `..`. */
export function validateDescendingPath(path: FieldPath, text: string): FieldError[] {
  const relative = text.startsWith('/') ? [path.invalid(text, 'must be a relative path')] : []
  return [...relative, ...validateNoBacksteps(path, text)]
}

/** The same, without names that the kubelet reserves (`..data`). */
export function validateUnreservedPath(path: FieldPath, text: string): FieldError[] {
  const errors = validateDescendingPath(path, text)
  const reserved = text.startsWith('..') && !text.startsWith('../')
  return reserved ? [...errors, path.invalid(text, "must not start with '..'")] : errors
}
