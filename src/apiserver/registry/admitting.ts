/** Creates the admission attributes of each request. */
import type { Attributes, Subject } from './admission.ts'
import type { ObjectReader } from './resource.ts'
import type { Services, WriteRequest } from './services.ts'

/** The attributes of a request; `request.gvk` is the kind of its object. */
export function attributesOf(request: WriteRequest, objects: ObjectReader, subject: Subject): Attributes {
  return new RequestAttributes(request, objects, subject)
}

/** Created for every write, mostly twice: attributes that few plugins read are computed on demand. */
class RequestAttributes implements Attributes {
  readonly operation: Subject['operation']
  readonly kind: Subject['kind']
  readonly addressed: Attributes['addressed']
  readonly subresource: string
  readonly objectKind: Attributes['objectKind']
  readonly namespace: string
  readonly name: string
  readonly object: Subject['object']
  readonly oldObject: Subject['oldObject']
  readonly options: Attributes['options']
  readonly dryRun: boolean
  readonly user: Attributes['user']
  readonly objects: ObjectReader
  readonly annotate: Attributes['annotate']
  readonly deadlineMs: number | undefined
  private readonly request: WriteRequest

  constructor(request: WriteRequest, objects: ObjectReader, subject: Subject) {
    const { group, version, plural: resource } = subject.kind
    this.operation = subject.operation
    this.kind = subject.kind
    this.addressed = request.addressed ?? { group, version, resource }
    this.subresource = request.subresource
    this.objectKind = request.gvk
    this.namespace = request.namespace
    this.name = request.isOneOfMany === true ? '' : subject.name
    this.object = subject.object
    this.oldObject = subject.oldObject
    this.options = request.options
    this.dryRun = request.dryRun
    this.user = request.user
    this.objects = objects
    this.annotate = request.annotate
    this.deadlineMs = request.deadlineMs
    this.request = request
  }

  warn(text: string): void {
    this.request.warn(text)
  }

  get signal(): AbortSignal {
    return this.request.signal
  }
}

/**
 * Admission of objects that are never stored: a binding, an eviction, a review, a connection. Runs mutating plugins and
 * returns the function that runs validating ones. Both throw StatusError if a plugin refuses.
 */
export async function admit(
  { admission, objects }: Services,
  request: WriteRequest,
  subject: Subject,
): Promise<() => Promise<void>> {
  const attributes = attributesOf(request, objects, subject)
  await admission.mutate(attributes)
  return async () => admission.validate(attributes)
}
