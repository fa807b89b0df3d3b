/** Semantic versions, version 1 of the library. */
import { defineLibrary, free, member, type Library } from '../library.ts'
import { BOOL, INT, STRING, opaque } from '../type.ts'

const SEMVER = opaque('kubernetes.Semver')

export const semver: Library = defineLibrary('kubernetes.Semver', {
  semver: [free('string_to_semver', [STRING], SEMVER), free('string_bool_to_semver', [STRING, BOOL], SEMVER)],
  isSemver: [free('is_semver_string', [STRING], BOOL), free('is_semver_string_bool', [STRING, BOOL], BOOL)],
  isGreaterThan: [member('semver_is_greater_than', [SEMVER, SEMVER], BOOL)],
  isLessThan: [member('semver_is_less_than', [SEMVER, SEMVER], BOOL)],
  compareTo: [member('semver_compare_to', [SEMVER, SEMVER], INT)],
  major: [member('semver_major', [SEMVER], INT)],
  minor: [member('semver_minor', [SEMVER], INT)],
  patch: [member('semver_patch', [SEMVER], INT)],
})
