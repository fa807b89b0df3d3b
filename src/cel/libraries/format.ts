/** Named formats of strings: `format.dns1123Label().validate(s)`. */
import { defineLibrary, free, member, type Library, type Overload } from '../library.ts'
import { STRING, listOf, opaque, optionalOf } from '../type.ts'

const FORMAT = opaque('kubernetes.NamedFormat')

const names = [
  'dns1123Label',
  'dns1123Subdomain',
  'dns1035Label',
  'qualifiedName',
  'dns1123LabelPrefix',
  'dns1123SubdomainPrefix',
  'dns1035LabelPrefix',
  'labelValue',
  'uri',
  'uuid',
  'byte',
  'date',
  'datetime',
] as const

const constants: Record<string, Overload[]> = Object.fromEntries(
  names.map((name) => [`format.${name}`, [free(`format.${name}`, [], FORMAT)]]),
)

export const format: Library = defineLibrary('kubernetes.format', {
  validate: [member('format-validate', [FORMAT, STRING], optionalOf(listOf(STRING)))],
  'format.named': [free('format-named', [STRING], optionalOf(FORMAT))],
  ...constants,
})
