/** The CEL functions for JSON patches, which only mutating admission policies have. */
import { estimateReadKept, readFirst } from '../cost/costs.ts'
import { defineLibrary, free, type Library } from '../library.ts'
import { STRING } from '../type.ts'

export const jsonPatch: Library = defineLibrary('kubernetes.jsonpatch', {
  'jsonpatch.escapeKey': [
    free('string_jsonpatch_escapeKey_string', [STRING], STRING, {
      evaluate: (key: string) => key.replaceAll('~', '~0').replaceAll('/', '~1'),
      cost: readFirst,
      estimate: estimateReadKept,
    }),
  ],
})
