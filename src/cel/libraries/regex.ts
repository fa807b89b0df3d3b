/** Parts of strings by regular expression. */
import { defineLibrary, member, type Library } from '../library.ts'
import { INT, STRING, listOf } from '../type.ts'

export const regex: Library = defineLibrary('kubernetes.regex', {
  find: [member('string_find_string', [STRING, STRING], STRING)],
  findAll: [
    member('string_find_all_string', [STRING, STRING], listOf(STRING)),
    member('string_find_all_string_int', [STRING, STRING, INT], listOf(STRING)),
  ],
})
