/** Speaking instead of typing, where the browser can turn speech into text (UI-95). */

import { Mic, MicOff } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { t } from "../text.ts";
import { IconButton } from "../ui/kit.tsx";
import { complain } from "../ui/toasts.tsx";

/** The part of the browser's recognizer that is used; TypeScript's library does not describe it. */
interface Recognizer {
  lang: string;
  continuous: boolean;
  interimResults: boolean;
  onresult: ((event: { resultIndex: number; results: ArrayLike<ArrayLike<{ transcript: string }> & { isFinal: boolean }> }) => void) | null;
  onerror: ((event: { error: string }) => void) | null;
  onend: (() => void) | null;
  start: () => void;
  stop: () => void;
}

type Recognizers = Partial<Record<"SpeechRecognition" | "webkitSpeechRecognition", new () => Recognizer>>;

const SILENT = ["no-speech", "aborted"];

export function VoiceButton({ onWords }: { onWords: (words: string) => void }) {
  const made = useRef<Recognizer | null>(null);
  const heard = useRef(onWords);
  heard.current = onWords;
  const [listening, setListening] = useState(false);
  const known = window as unknown as Recognizers;
  const Made = known.SpeechRecognition ?? known.webkitSpeechRecognition;
  useEffect(() => () => made.current?.stop(), []);
  if (!Made || !window.isSecureContext) return null;
  const toggle = (): void => {
    if (listening) return made.current?.stop();
    const recognizer = new Made();
    recognizer.lang = navigator.language;
    recognizer.continuous = true;
    recognizer.interimResults = false;
    recognizer.onresult = (event) => {
      for (let at = event.resultIndex; at < event.results.length; at++) {
        const result = event.results[at];
        if (result?.isFinal && result[0]) heard.current(result[0].transcript.trim());
      }
    };
    recognizer.onerror = (event) => {
      if (!SILENT.includes(event.error)) complain(new Error(t.voiceBlocked));
    };
    recognizer.onend = () => setListening(false);
    made.current = recognizer;
    recognizer.start();
    setListening(true);
  };
  return <IconButton icon={listening ? MicOff : Mic} label={listening ? t.voiceStop : t.voice} pressed={listening} onClick={toggle} />;
}
