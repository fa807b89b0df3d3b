/** How a request is shown to admission, whatever it is: the one place where Attributes are made. */
import type { Attributes, Subject } from './admission.ts'
import type { ObjectReader } from './resource.ts'
import type { Services, WriteRequest } from './services.ts'

/** What plugins are shown of a request; `request.gvk` is the kind of the object that it brings. */
export function attributesOf(request: WriteRequest, objects: ObjectReader, subject: Subject): Attributes {
  const { gvk, namespace, subresource, options, dryRun, user, warn, annotate, signal, deadlineMs } = request
  const { group, version, plural: resource } = subject.kind
  return {
    operation: subject.operation,
    kind: subject.kind,
    addressed: request.addressed ?? { group, version, resource },
    subresource,
    objectKind: gvk,
    namespace,
    name: request.isOneOfMany === true ? '' : subject.name,
    object: subject.object,
    oldObject: subject.oldObject,
    options,
    dryRun,
    user,
    objects,
    warn,
    annotate,
    signal,
    deadlineMs,
  }
}

/**
 * Admission of what is never stored: a binding, an eviction, a review, a connection. Plugins may change the object; those
 * that only look at it are asked by what is returned. Both throw StatusError when one refuses.
 */
export async function admit(
  { admission, objects }: Services,
  request: WriteRequest,
  subject: Subject,
): Promise<() => Promise<void>> {
  const attributes = attributesOf(request, objects, subject)
  await admission.mutate(attributes)
  return () => admission.validate(attributes)
}
