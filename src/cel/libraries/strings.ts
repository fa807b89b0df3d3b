/** cel-go's string functions, version 2. Positions count code points. */
import { defineLibrary, free, member, type Library } from '../library.ts'
import { DYN, INT, STRING, listOf } from '../type.ts'

export const strings: Library = defineLibrary('cel.lib.ext.strings', {
  charAt: [member('string_char_at_int', [STRING, INT], STRING)],
  indexOf: [
    member('string_index_of_string', [STRING, STRING], INT),
    member('string_index_of_string_int', [STRING, STRING, INT], INT),
  ],
  lastIndexOf: [
    member('string_last_index_of_string', [STRING, STRING], INT),
    member('string_last_index_of_string_int', [STRING, STRING, INT], INT),
  ],
  lowerAscii: [member('string_lower_ascii', [STRING], STRING)],
  replace: [
    member('string_replace_string_string', [STRING, STRING, STRING], STRING),
    member('string_replace_string_string_int', [STRING, STRING, STRING, INT], STRING),
  ],
  split: [
    member('string_split_string', [STRING, STRING], listOf(STRING)),
    member('string_split_string_int', [STRING, STRING, INT], listOf(STRING)),
  ],
  substring: [
    member('string_substring_int', [STRING, INT], STRING),
    member('string_substring_int_int', [STRING, INT, INT], STRING),
  ],
  trim: [member('string_trim', [STRING], STRING)],
  upperAscii: [member('string_upper_ascii', [STRING], STRING)],
  format: [member('string_format', [STRING, listOf(DYN)], STRING)],
  'strings.quote': [free('strings_quote', [STRING], STRING)],
  join: [member('list_join', [listOf(STRING)], STRING), member('list_join_string', [listOf(STRING), STRING], STRING)],
})
