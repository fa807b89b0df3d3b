/**
 * Lists the 500 responses that upstream also returns, each with its reason. The fuzzer reports every other 500 as a
 * defect.
 */
export interface KnownError {
  readonly methods: RegExp
  readonly message: RegExp
  readonly because: string
}

/** Compared with kube-apiserver v1.36.4: it answered the same requests with the same code and the same words. */
const UPSTREAM = 'v1.36.4 answered so too, in these words'

export const KNOWN_ERRORS: readonly KnownError[] = [
  {
    methods: /^GET$/,
    message: /resourceVersion: Invalid value: .* strconv\.ParseUint/s,
    because: 'wire.md 14: a watch, or a get, from something that is no number is 500 without reason',
  },
  {
    methods: /^POST$/,
    message: /resourceVersion should not be set on objects to be created/,
    because: 'wire.md 28: a resourceVersion in the body of a create',
  },
  {
    methods: /^PATCH$/,
    message: /failed to create typed patch object \(/,
    because: 'wire.md 34: unknown or mistyped fields in an apply of a built-in kind',
  },
  {
    methods: /^(PUT|PATCH)$/,
    message: /strconv\.ParseUint: parsing .*: (invalid syntax|value out of range)/s,
    because: `${UPSTREAM}: a resourceVersion in the body that is no number`,
  },
  {
    methods: /^PATCH$/,
    message: /unknown patch type: |unable to find api field in struct |does not contain declared merge key/,
    because: `${UPSTREAM}: what its strategic merge finds wrong and has no code for is 500`,
  },
  {
    methods: /^PATCH$/,
    message:
      /expected a (\[\]interface|map\[string\]interface) \{\}, but received a |merging (lists|an object in json)|The order in patch list:/,
    because: 'the same: texts of its strategic merge for what has another type than its schema says',
  },
  {
    methods: /^PATCH$/,
    message: /failed to convert new object \(.*\) to proper version: unable to convert unstructured object to /s,
    because: `${UPSTREAM}: an apply of a time that is none, or of a fraction for an integer`,
  },
  {
    methods: /^(POST|PUT|PATCH)$/,
    message: /failed to allocate a serviceIP for Service .*: range is full/,
    because: 'upstream answers InternalError too when no ServiceCIDR has an address left: the fuzzer deletes them',
  },
  {
    methods: /^(POST|PUT|PATCH)$/,
    message: /unsupported role reference kind: /,
    because: 'upstream resolves the role before it validates the binding, for who may not bind everything',
  },
]

/** Status codes of requests that wait for something missing; they are no defects. */
export const EXPECTED_5XX: ReadonlySet<number> = new Set([501, 503, 504])

export function isKnownError(method: string, message: string): boolean {
  return KNOWN_ERRORS.some((known) => known.methods.test(method) && known.message.test(message))
}
