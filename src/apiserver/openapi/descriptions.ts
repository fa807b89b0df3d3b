/** What `kubectl explain` says, in our own words: for the parts every object has; more is added as kinds are explained. */

const META = 'io.k8s.apimachinery.pkg.apis.meta.v1'

/** By definition, then by field; `''` is the definition itself. */
const DESCRIPTIONS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  [`${META}.ObjectMeta`]: {
    '': 'What every stored object carries: its name, its labels, who owns it, and its life so far.',
    name: 'Names the object among those of its kind in its namespace. Cannot be changed.',
    generateName: 'A prefix for which the server draws a name when none is given.',
    namespace: 'The namespace the object lives in. Cannot be changed.',
    labels: 'Keys and values by which objects are selected.',
    annotations: 'Keys and values for tools and people; nothing is selected by them.',
    uid: 'Distinguishes this object from all others, of all times.',
    resourceVersion: 'Changes with every write. Send it back to make sure nobody wrote in between.',
    generation: 'Counts the changes of what is desired.',
    creationTimestamp: 'When the server stored the object first.',
    deletionTimestamp: 'When the object will be gone, once somebody asked for its deletion.',
    finalizers: 'Who must be done with the object before it can go.',
    ownerReferences: 'The objects this one belongs to; when all are gone, it goes too.',
    managedFields: 'Which manager set which fields.',
  },
  'io.k8s.api.core.v1.ConfigMap': {
    '': 'Configuration for pods to read.',
    data: 'Text, by key.',
    binaryData: 'Bytes as base64, by key.',
    immutable: 'Once true, neither the data nor this field can change.',
  },
}

const COMMON_FIELDS: Readonly<Record<string, string>> = {
  apiVersion: 'The version of the API that this object is written in.',
  kind: 'What kind of object this is.',
  metadata: 'What every object has: name, namespace, labels and more.',
  spec: 'What is desired.',
  status: 'What was last observed. Written by the system.',
}

/** Empty where there is nothing to say yet. */
export function describeDefinition(name: string, field = ''): string {
  const known = DESCRIPTIONS[name]
  if (known !== undefined && Object.hasOwn(known, field)) return known[field] ?? ''
  return Object.hasOwn(COMMON_FIELDS, field) ? (COMMON_FIELDS[field] ?? '') : ''
}
