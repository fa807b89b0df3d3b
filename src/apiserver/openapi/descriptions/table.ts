/** What a description table is, and the texts that tables share. Texts are our own words: short, for people who ask. */

/** By type, then by field as JSON spells it; `''` is the type itself. */
export type DescriptionTable = Readonly<Record<string, FieldTexts>>

export type FieldTexts = Readonly<Record<string, string>>

/** For every type called `…Condition` that says nothing else. */
export const CONDITION: FieldTexts = {
  '': 'One thing that can be said of the object, whether it is so, and since when.',
  type: 'What is said, as one word.',
  status: 'Whether it is so: True, False or Unknown.',
  reason: 'Why, as one word for programs.',
  message: 'Why, as a sentence for people.',
  lastTransitionTime: 'When the status last became another.',
  lastProbeTime: 'When somebody last looked.',
  lastUpdateTime: 'When the condition was last written.',
  lastHeartbeatTime: 'When whoever writes it was last heard of.',
  observedGeneration: 'The generation of the object that this was said about.',
}

/** Where nothing better is said. */
export const COMMON: FieldTexts = {
  apiVersion: 'The version of the API that this object is written in.',
  kind: 'What kind of object this is.',
  metadata: 'What every object has: name, namespace, labels and more.',
  spec: 'What is desired.',
  status: 'What was last observed. Written by the system.',
  conditions: 'What can be said about the object at the moment, one entry for each type.',
  observedGeneration: 'The generation of the object that the status is about. Older than the object: not up to date.',
}

/** For lists of objects. */
export const LIST: FieldTexts = {
  items: 'The objects.',
  metadata: 'What every list has: the version it was read at, and how to go on when it is not whole.',
}
